package raycluster

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// rayCluster returns a RayCluster as a user submits it.
func rayCluster(t *testing.T, spec, metadata string) *unstructured.Unstructured {
	t.Helper()
	text := `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: c, namespace: team` + metadata + `}, spec: {` + spec +
		`headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: h, image: i}]}}}}}`
	u := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// shortNames returns "Kind name" of the objects, with the first word of the name without the prefix "c-".
func shortNames(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, o := range objects {
		name, _, _ := strings.Cut(strings.TrimPrefix(o.GetName(), "c-"), "-")
		out = append(out, o.GetKind()+" "+name)
	}
	return out
}

func TestRender(t *testing.T) {
	plain := capability.NewSet(capability.RayCluster)
	openshift := capability.NewSet(capability.RayCluster, capability.Route, capability.OpenShiftIngress, capability.UserGroup)
	for name, tc := range map[string]struct {
		spec, metadata string
		served         capability.Set
		domain         string
		change         func(*config.RayCluster)
		want, unwanted []string
		notes          string
	}{
		"plain": {served: plain, domain: "apps.example.org",
			want:     []string{"RayCluster c", "NetworkPolicy head", "NetworkPolicy workers", "ServiceAccount oauth", "Service oauth", "ConfigMap proxy", "ClusterRoleBinding team", "Ingress ray"},
			unwanted: []string{"Route ray"}, notes: "generated"},
		"openshift": {served: openshift, want: []string{"Route ray", "Secret oauth", "Secret ca", "Secret head"}, unwanted: []string{"Ingress ray", "ConfigMap proxy"}, notes: "c-oauth-config"},
		"OpenShift without OAuth server": {served: capability.NewSet(capability.RayCluster, capability.Route, capability.OpenShiftIngress),
			want: []string{"Route ray", "ConfigMap proxy", "ServiceAccount oauth", "Secret ca", "Secret head"}, unwanted: []string{"Secret oauth", "Secret proxy"}},
		"no domain":      {served: plain, want: []string{"Service oauth"}, unwanted: []string{"Ingress ray"}, notes: "set raycluster.ingressDomain"},
		"suspended":      {served: plain, spec: "suspend: true, ", want: []string{"NetworkPolicy head", "Secret ca"}, unwanted: []string{"Service oauth", "ServiceAccount oauth", "ClusterRoleBinding team"}},
		"mTLS disabled":  {served: openshift, change: func(s *config.RayCluster) { s.MTLS = false }, want: []string{"Route ray"}, unwanted: []string{"Secret ca", "Secret head"}},
		"OAuth disabled": {served: openshift, change: func(s *config.RayCluster) { s.OAuth = false }, want: []string{"Secret ca"}, unwanted: []string{"ServiceAccount oauth", "Secret oauth", "ClusterRoleBinding team"}},
		"cert-manager": {served: capability.NewSet(capability.RayCluster, capability.Certificate), metadata: ", annotations: {ray.openshift.ai/certificates: cert-manager}",
			want: []string{"Certificate head", "Secret proxy"}, unwanted: []string{"Secret head"}},
		"no cert-manager":       {served: plain, metadata: ", annotations: {ray.openshift.ai/certificates: cert-manager}", want: []string{"Secret head"}, unwanted: []string{"Certificate head"}},
		"managed by MultiKueue": {served: plain, spec: "managedBy: kueue.x-k8s.io/multikueue, ", want: []string{"RayCluster c"}, unwanted: []string{"NetworkPolicy head"}, notes: "no objects are created for RayCluster c"},
	} {
		t.Run(name, func(t *testing.T) {
			settings := config.DefaultRayCluster()
			if tc.change != nil {
				tc.change(&settings)
			}
			submitted := rayCluster(t, tc.spec, tc.metadata)
			original := submitted.DeepCopy()
			objects, notes, err := Render(RenderInputs{Settings: settings, Served: tc.served, Domain: tc.domain, Version: "v1"}, submitted)
			if err != nil {
				t.Fatal(err)
			}
			got := shortNames(objects)
			for _, want := range tc.want {
				if !slices.Contains(got, want) {
					t.Errorf("missing %s, got %q", want, got)
				}
			}
			for _, unwanted := range tc.unwanted {
				if slices.Contains(got, unwanted) {
					t.Errorf("unexpected %s", unwanted)
				}
			}
			if !strings.Contains(strings.Join(notes, "\n"), tc.notes) {
				t.Errorf("got notes %q, want them to contain %q", notes, tc.notes)
			}
			for _, o := range objects {
				if data, found := o.Object["data"]; found && o.GetKind() == "Secret" {
					t.Errorf("Secret %s has data %v, want none", o.GetName(), data)
				}
			}
			if !reflect.DeepEqual(original, submitted) {
				t.Error("the object of the user was changed")
			}
		})
	}
}

func TestRenderUsesKubeRayNamespaces(t *testing.T) {
	for name, tc := range map[string]struct {
		in   RenderInputs
		want []string
	}{
		"none":       {RenderInputs{}, nil},
		"discovered": {RenderInputs{KubeRayNamespaces: []string{"kr"}}, []string{"kr"}},
		"set":        {RenderInputs{KubeRayNamespaces: []string{"kr"}, Settings: config.RayCluster{KubeRayNamespaces: []string{"a"}}}, []string{"a"}},
	} {
		if got := tc.in.inputs(raycluster.View(nil)).KubeRay; !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestRenderRejectsInvalidClusters(t *testing.T) {
	u := rayCluster(t, "", "")
	unstructured.RemoveNestedField(u.Object, "spec", "headGroupSpec", "template", "spec", "containers")
	_, _, err := Render(RenderInputs{Settings: config.DefaultRayCluster(), Version: "v1"}, u)
	if err == nil || !strings.Contains(err.Error(), "admission of RayCluster c: spec.headGroupSpec.template.spec.containers") {
		t.Errorf("unexpected error: %v", err)
	}
}
