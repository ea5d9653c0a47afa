package raycluster

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

func newCluster(t *testing.T, text string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

const plainCluster = `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"c","namespace":"team"},"spec":{"headGroupSpec":{"rayStartParams":{},"template":{"spec":{"containers":[{"name":"h","image":"i"}]}}}}}`

// Admit is idempotent, and does not change the submitted object.
func TestAdmit(t *testing.T) {
	for name, served := range map[string]capability.Set{"plain": capability.NewSet(), "openshift": capability.NewSet(capability.Route, capability.OpenShiftIngress)} {
		settings := SettingsOf(config.DefaultRayCluster(), served, "apps.example.org", "v7")
		if settings.OpenShift != (name == "openshift") || settings.Domain != "apps.example.org" {
			t.Errorf("%s: unexpected settings: %+v", name, settings)
		}
		submitted := newCluster(t, plainCluster)
		original := runtime.DeepCopyJSON(submitted)
		admitted, warnings, err := Admit(settings, submitted)
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%s: unexpected warnings %q, error %v", name, warnings, err)
		}
		if !reflect.DeepEqual(submitted, original) {
			t.Errorf("%s: the submitted object was changed", name)
		}
		c := raycluster.View(admitted)
		if v, _ := c.Annotation(raycluster.AnnotationVersion); v != "v7" {
			t.Errorf("%s: version %q, want %q", name, v, "v7")
		}
		if in := c.Injected(); !in.MTLS || in.Sidecar == raycluster.AuthNone {
			t.Errorf("%s: got %+v, want mTLS and an authenticating sidecar", name, in)
		}
		again, _, err := Admit(settings, admitted)
		if err != nil || !reflect.DeepEqual(again, admitted) {
			t.Errorf("%s: the admitted object was changed again: %v", name, err)
		}
	}
}

func TestAdmitReturnsWarningsAndErrors(t *testing.T) {
	settings := SettingsOf(config.DefaultRayCluster(), capability.NewSet(), "", "v7")
	managedElsewhere := strings.Replace(plainCluster, `"spec":{"headGroupSpec"`, `"spec":{"managedBy":"kueue.x-k8s.io/multikueue","headGroupSpec"`, 1)
	admitted, _, err := Admit(settings, newCluster(t, managedElsewhere))
	if err != nil || !reflect.DeepEqual(admitted, newCluster(t, managedElsewhere)) {
		t.Errorf("managed by MultiKueue: got %v, error %v, want the submitted object", admitted, err)
	}
	generated := strings.Replace(plainCluster, `"name":"c"`, `"generateName":"c-"`, 1)
	admitted, _, err = Admit(settings, newCluster(t, generated))
	if err != nil || !strings.HasPrefix(raycluster.View(admitted).Name(), "c-") {
		t.Errorf("generateName: got name %q, error %v, want a generated name", raycluster.View(admitted).Name(), err)
	}
	long := strings.Replace(plainCluster, `"name":"c"`, `"name":"`+strings.Repeat("c", 50)+`"`, 1)
	if _, warnings, err := Admit(settings, newCluster(t, long)); err != nil || len(warnings) == 0 {
		t.Errorf("truncated host: got warnings %q, error %v, want a warning", warnings, err)
	}
	userElements := strings.Replace(plainCluster, `{"name":"h","image":"i"}]`, `{"name":"h","image":"i","env":[{"name":"RAY_TLS_CA_CERT","value":"/mine/ca.crt"}]}],"initContainers":[{"name":"mine","image":"i"}]`, 1)
	want := []string{"spec.headGroupSpec.template.spec.containers.0.env: RAY_TLS_CA_CERT is replaced by that of the operator, which secures the cluster itself: remove it"}
	admitted, warnings, err := Admit(settings, newCluster(t, userElements))
	if err != nil || !slices.Equal(warnings, want) {
		t.Errorf("replaced variable of the user: got warnings %q, error %v, want %q", warnings, err, want)
	}
	if _, warnings, err = Admit(settings, admitted); err != nil || len(warnings) > 0 {
		t.Errorf("injected elements: got warnings %q, error %v, want none", warnings, err)
	}
	for want, text := range map[string]string{
		"spec.headGroupSpec": `{"metadata":{"name":"c"},"spec":{"headGroupSpec":7}}`,
		"containers":         strings.Replace(plainCluster, `[{"name":"h","image":"i"}]`, `[]`, 1),
	} {
		if _, _, err := Admit(settings, newCluster(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want it to contain %q", err, want)
		}
	}
}
