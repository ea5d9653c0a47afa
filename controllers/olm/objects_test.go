package olm

import (
	"os"
	"slices"
	"strings"
	"testing"

	consolev1 "github.com/openshift/api/console/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

func buildGroups(t *testing.T) map[types.NamespacedName]group {
	t.Helper()
	all, err := newGroups("here")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// decodeStrict decodes an object and reports unknown fields, which would not be applied.
func decodeStrict(t *testing.T, object *unstructured.Unstructured, typed any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		t.Errorf("%s %s: unexpected error: %v", object.GetKind(), object.GetName(), err)
	}
}

func TestMonitoringObjectsHaveOwner(t *testing.T) {
	g := buildGroups(t)[types.NamespacedName{Namespace: "here", Name: deploymentName}]
	if g.owner != deploymentKind || len(g.objects) != 2 {
		t.Fatalf("got %+v, want 2 objects that the Deployment owns", g)
	}
	monitor, rule := &monitoringv1.ServiceMonitor{}, &monitoringv1.PrometheusRule{}
	decodeStrict(t, g.objects[0], monitor)
	decodeStrict(t, g.objects[1], rule)
	if monitor.Namespace != "here" || rule.Namespace != "here" || len(rule.Spec.Groups) != 2 {
		t.Errorf("unexpected ServiceMonitor %+v or PrometheusRule %+v", monitor, rule)
	}
	tls := monitor.Spec.Endpoints[0].TLSConfig
	if *tls.ServerName != "odh-platform-operator-controller-manager-service.here.svc" ||
		tls.CA.Secret.Name != "odh-platform-operator-controller-manager-service-cert" || tls.CA.Secret.Key != "tls.crt" {
		t.Errorf("unexpected tlsConfig: %+v", tls)
	}
}

// Each example is a valid ConsoleYAMLSample for the kind of the CRD that owns it.
func TestExamplesMatchTheirCRD(t *testing.T) {
	titles := map[string]bool{}
	for owner, g := range buildGroups(t) {
		if g.owner != crdKind {
			continue
		}
		if _, err := os.Stat("../../config/crd/bases/" + fileOf(owner.Name)); err != nil {
			t.Errorf("the owner %s is not a CRD of this operator: %v", owner.Name, err)
		}
		for _, object := range g.objects {
			s := &consolev1.ConsoleYAMLSample{}
			decodeStrict(t, object, s)
			var example struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(s.Spec.YAML), &example); err != nil {
				t.Errorf("%s: unexpected error: %v", s.Name, err)
			}
			apiVersion, kind := g.requires[0].ToAPIVersionAndKind()
			if example.APIVersion != apiVersion || example.Kind != kind || s.Spec.TargetResource.APIVersion != apiVersion || s.Spec.TargetResource.Kind != kind {
				t.Errorf("%s: got the example %v for %v, want both of kind %v", s.Name, example, s.Spec.TargetResource, g.requires)
			}
			if title := string(s.Spec.Title); titles[title] || strings.HasSuffix(title, ": ") || len(s.Spec.Description) < 5 {
				t.Errorf("%s: title %q, description %q", s.Name, title, s.Spec.Description)
			}
			titles[string(s.Spec.Title)] = true
		}
	}
	if len(titles) < 15 {
		t.Errorf("got %d examples, want at least 15", len(titles))
	}
}

// fileOf returns the name of the file of a CRD.
func fileOf(crd string) string {
	plural, group, _ := strings.Cut(crd, ".")
	return group + "_" + plural + ".yaml"
}

// The roles allow patching exactly the objects that the controller creates.
func TestRoleNamesCreatedObjects(t *testing.T) {
	text, err := os.ReadFile("../../config/rbac/olm/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var allowed, want []string
	for document := range strings.SplitSeq(string(text), "---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Verbs, "patch") {
				for _, name := range rule.ResourceNames {
					allowed = append(allowed, rule.Resources[0]+" "+name)
				}
			}
		}
	}
	for _, g := range buildGroups(t) {
		for _, o := range g.objects {
			want = append(want, strings.ToLower(o.GetKind())+"s "+o.GetName())
		}
	}
	slices.Sort(allowed)
	slices.Sort(want)
	if !slices.Equal(allowed, want) {
		t.Errorf("allowed %q\nwant %q: update the markers in setup.go", allowed, want)
	}
}

// A terminating object without our labels causes no event.
func TestTerminatingObjectIsPolled(t *testing.T) {
	result, err := (&addonReconciler{}).toResult(&appsv1.Deployment{}, &apply.Error{Kind: "Service", Err: &apply.TerminatingError{}})
	if err != nil || result.RequeueAfter != reconciler.RequeueSoon {
		t.Errorf("got result %+v, error %v, want a requeue after %s", result, err, reconciler.RequeueSoon)
	}
}
