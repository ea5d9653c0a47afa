package operator

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func readManifests(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile("testdata/install/objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(content)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func kinds(objects []*unstructured.Unstructured) []string {
	var result []string
	for _, object := range objects {
		result = append(result, object.GetKind())
	}
	return result
}

func TestSplit(t *testing.T) {
	installed, err := split(readManifests(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"CustomResourceDefinition", "Namespace", "ServiceAccount", "Service", "Role", "RoleBinding", "ValidatingWebhookConfiguration",
	}
	if difference := cmp.Diff(want, kinds(installed.Objects)); difference != "" {
		t.Error(difference)
	}
	if account := (types.NamespacedName{Namespace: "test-system", Name: "manager"}); installed.ServiceAccount != account {
		t.Errorf("got ServiceAccount %v, want %v", installed.ServiceAccount, account)
	}
	if installed.Deployment.Spec.Template.Spec.Containers[0].Image != "registry.example.com/manager" {
		t.Errorf("got Deployment %v, want the Deployment of the manager", installed.Deployment)
	}
}

func TestSplitKeepsOtherDeployments(t *testing.T) {
	objects, err := decode([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"etcd"},
		"spec":{"template":{"spec":{"containers":[{"name":"etcd"}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	installed, err := split(append(readManifests(t), objects...))
	if err != nil {
		t.Fatal(err)
	}
	if last := installed.Objects[len(installed.Objects)-1]; last.GetName() != "etcd" {
		t.Errorf("the last object to create is %s, want etcd", last.GetName())
	}
	if installed.Deployment.Name == "etcd" {
		t.Error("split returned the Deployment of etcd as the Deployment of the manager")
	}
}

func TestSplitRequiresOneManagerDeployment(t *testing.T) {
	deployment := func(name string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "manager"}}}}}}}
		object.SetName(name)
		return object
	}
	broken := deployment("broken")
	broken.Object["spec"] = "text"
	for name, c := range map[string]struct {
		objects []*unstructured.Unstructured
		want    string
	}{
		"no Deployments":  {nil, "no Deployment"},
		"two Deployments": {[]*unstructured.Unstructured{deployment("a"), deployment("b")}, "two Deployments of the manager, a and b"},
		"no manager":      {slices.Repeat([]*unstructured.Unstructured{{Object: map[string]any{"kind": "Deployment"}}}, 2), "no Deployment of the manager"},
		"invalid spec":    {[]*unstructured.Unstructured{broken}, "decoding Deployment broken"},
	} {
		if _, err := split(c.objects); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		}
	}
}

func TestDecode(t *testing.T) {
	objects, err := decode([]byte("---\n# nothing\n---\nkind: A\n---\n{\"kind\": \"B\"}\n---\n"))
	if err != nil || !slices.Equal(kinds(objects), []string{"A", "B"}) {
		t.Errorf("got kinds %v, error %v, want A and B", kinds(objects), err)
	}
	if _, err := decode([]byte("kind: [")); err == nil {
		t.Error("want an error for broken YAML")
	}
}

func TestEncode(t *testing.T) {
	want := readManifests(t)
	text, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Error(difference)
	}
}

func TestRouteWebhooks(t *testing.T) {
	conversion := &unstructured.Unstructured{Object: map[string]any{
		"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "converted"},
		"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{
			"service": map[string]any{"name": "webhook", "namespace": "test-system"},
		}}}},
	}}
	other := &unstructured.Unstructured{Object: map[string]any{
		"kind": "Service", "metadata": map[string]any{"name": "other", "namespace": "test-system"}, "spec": map[string]any{"type": "ClusterIP"},
	}}
	withURL := &unstructured.Unstructured{Object: map[string]any{
		"kind":     "MutatingWebhookConfiguration",
		"webhooks": []any{map[string]any{"clientConfig": map[string]any{"url": "https://example.com"}}, "invalid"},
	}}
	objects := append(readManifests(t), conversion, other, withURL)
	if err := RouteWebhooks(objects, 1234); err != nil {
		t.Fatal(err)
	}
	routed := 0
	for _, object := range objects {
		references, err := webhookReferences(object)
		if err != nil {
			t.Error(err)
		}
		routed += len(references)
		for _, reference := range references {
			if reference["port"] != int64(1234) {
				t.Errorf("%s: got reference %v, want port 1234", object.GetKind(), reference)
			}
		}
		got, _, _ := unstructured.NestedString(object.Object, "spec", "type")
		if want := map[string]string{"webhook": "ExternalName", "other": "ClusterIP"}[object.GetName()]; object.GetKind() == "Service" && got != want {
			t.Errorf("Service %s is of type %q, want %q", object.GetName(), got, want)
		}
	}
	if routed != 2 {
		t.Errorf("got %d service references, want those of the validating and of the conversion webhook", routed)
	}
	broken := &unstructured.Unstructured{Object: map[string]any{"kind": "CustomResourceDefinition", "spec": "text"}}
	if err := RouteWebhooks([]*unstructured.Unstructured{broken}, 1); err == nil {
		t.Error("want an error for a broken CustomResourceDefinition")
	}
}

func TestWithDefaults(t *testing.T) {
	for name, c := range map[string]struct{ args, want []string }{
		"no arguments":       {nil, []string{"--a=1", "--b=2"}},
		"value overridden":   {[]string{"--a=5"}, []string{"--a=5", "--b=2"}},
		"flag without value": {[]string{"--b"}, []string{"--b", "--a=1"}},
		"longer name":        {[]string{"--abc=1"}, []string{"--abc=1", "--a=1", "--b=2"}},
		"all overridden":     {[]string{"--b=3", "--a=4"}, []string{"--b=3", "--a=4"}},
	} {
		if difference := cmp.Diff(c.want, withDefaults(c.args, "--a=1", "--b=2")); difference != "" {
			t.Errorf("%s: unexpected arguments (-want +got):\n%s", name, difference)
		}
	}
}
