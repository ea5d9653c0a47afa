package apply

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

func TestCreateWritesOnce(t *testing.T) {
	b := newTestApplier(t)
	b.must(b.Create(t.Context(), b.owner, newConfigMap("a", "1")))
	first := b.get("a")
	if first.Labels[names.ComponentLabel] != "test" || !metav1.IsControlledBy(first, b.owner) || first.Data["key"] != "1" {
		t.Errorf("unexpected object: %+v", first)
	}
	b.must(b.Create(t.Context(), b.owner, newConfigMap("a", "2")))
	if again := b.get("a"); again.UID != first.UID || again.Data["key"] != "1" {
		t.Errorf("the existing object was changed: %+v", again)
	}
	if b.seen["apply"]+b.seen["patch"] != 0 {
		t.Errorf("unexpected requests: %v", b.seen)
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
			b := newTestApplier(t, existingConfigMap(c.change))
			before := b.get("a")
			err := b.Create(t.Context(), b.owner, newConfigMap("a", "mine"))
			foreign, ok := errors.AsType[*ForeignError](err)
			if !ok || foreign.Name != "a" || foreign.Controller != c.controller {
				t.Errorf("got error %v, want a ForeignError with controller %q", err, c.controller)
			}
			if b.get("a").ResourceVersion != before.ResourceVersion {
				t.Error("the existing object was written")
			}
		})
	}
}

func TestCreateReturnsErrors(t *testing.T) {
	b := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	b.failing["live"] = errors.New("unreachable")
	if err := b.Create(t.Context(), b.owner, newConfigMap("a", "1")); !errors.Is(err, b.failing["live"]) {
		t.Errorf("got error %v, want that of reading the existing object", err)
	}
	for name, object := range map[string]Object{"unknown type": {Config: unknownConfig{}}, "another namespace": {Config: corev1ac.ConfigMap("a", "elsewhere")}} {
		if failed, ok := errors.AsType[*Error](b.Create(t.Context(), b.owner, object)); !ok || failed.Err == nil {
			t.Errorf("%s: want an Error", name)
		}
	}
	if b.DeleteOwned(t.Context(), "", &unknown{}) == nil {
		t.Error("want an error for an object of an unknown kind")
	}
}

// unknown is an object whose kind is not in the scheme.
type unknown struct{ corev1.ConfigMap }
