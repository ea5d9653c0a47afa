package apply

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

func TestCreateKeepsExistingObject(t *testing.T) {
	a := newTestApplier(t)
	a.must(a.Create(t.Context(), a.owner, newConfigMap("a", "1")))
	first := a.get("a")
	if first.Labels[names.ComponentLabel] != "test" || !metav1.IsControlledBy(first, a.owner) || first.Data["key"] != "1" {
		t.Errorf("unexpected object: %+v", first)
	}
	a.must(a.Create(t.Context(), a.owner, newConfigMap("a", "2")))
	if again := a.get("a"); again.UID != first.UID || again.Data["key"] != "1" {
		t.Errorf("the existing object was changed: %+v", again)
	}
	if a.seen["apply"]+a.seen["patch"] != 0 {
		t.Errorf("unexpected requests: %v", a.seen)
	}
}

func TestCreateKeepsForeignObject(t *testing.T) {
	otherController := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "other", UID: "other-uid", Controller: new(true)}
	previousOwner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "previous-uid", Controller: new(true)}
	for name, c := range map[string]struct {
		change     func(*corev1.ConfigMap)
		controller string
	}{
		"no labels":           {func(*corev1.ConfigMap) {}, ""},
		"another controller":  {func(o *corev1.ConfigMap) { o.OwnerReferences = []metav1.OwnerReference{otherController} }, "Secret other"},
		"managed labels only": {func(o *corev1.ConfigMap) { o.Labels = names.Labels("test") }, ""},
		"previous owner of the same name": {func(o *corev1.ConfigMap) {
			o.Labels, o.OwnerReferences = names.Labels("test"), []metav1.OwnerReference{previousOwner}
		}, "ConfigMap owner"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t, existingConfigMap(c.change))
			before := a.get("a")
			err := a.Create(t.Context(), a.owner, newConfigMap("a", "mine"))
			foreign, ok := errors.AsType[*ForeignError](err)
			if !ok || foreign.Name != "a" || foreign.Controller != c.controller {
				t.Errorf("got error %v, want a ForeignError with controller %q", err, c.controller)
			}
			if a.get("a").ResourceVersion != before.ResourceVersion {
				t.Error("the existing object was written")
			}
		})
	}
}

func TestCreateReturnsErrors(t *testing.T) {
	a := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	a.failing["live"] = errors.New("unreachable")
	if err := a.Create(t.Context(), a.owner, newConfigMap("a", "1")); !errors.Is(err, a.failing["live"]) {
		t.Errorf("got error %v, want that of reading the existing object", err)
	}
	for name, object := range map[string]Object{"unknown type": {Config: unknownConfig{}}, "another namespace": {Config: corev1ac.ConfigMap("a", "elsewhere")}} {
		if failed, ok := errors.AsType[*Error](a.Create(t.Context(), a.owner, object)); !ok || failed.Err == nil {
			t.Errorf("%s: want an Error", name)
		}
	}
}
