package apply

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestPatchExistingSendsChanges(t *testing.T) {
	a := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	live := a.get("a")
	for range 2 { // the second time there is nothing left to send
		a.must(a.PatchExisting(t.Context(), live, func() { live.Data["key"] = "1" }))
	}
	if a.seen["patch"] != 1 {
		t.Errorf("unexpected requests: %v", a.seen)
	}
	if data := a.get("a").Data; data["key"] != "1" || data["old"] != "1" {
		t.Errorf("unexpected data: %v", data)
	}
}

func TestPatchExistingIgnoresTerminatingObject(t *testing.T) {
	a := newTestApplier(t, existingConfigMap(func(c *corev1.ConfigMap) { c.Finalizers = []string{"test.opendatahub.io/hold"} }))
	a.must(a.server.Delete(t.Context(), a.get("a")))
	live := a.get("a")
	a.must(a.PatchExisting(t.Context(), live, func() { live.Data["key"] = "1" }))
	if a.seen["patch"] != 0 {
		t.Errorf("unexpected requests: %v", a.seen)
	}
}

func TestPatchExistingReportsConflict(t *testing.T) {
	a := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	live, foreign := a.get("a"), a.get("a")
	foreign.Data["key"] = "theirs"
	a.must(a.server.Update(t.Context(), foreign))
	err := a.PatchExisting(t.Context(), live, func() { live.Data["key"] = "1" })
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Name != "a" || !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict that names the object", err)
	}
}

func TestPatchExistingRejectsUnknownKind(t *testing.T) {
	a := newTestApplier(t)
	if err := a.PatchExisting(t.Context(), &unregisteredObject{}, func() {}); err == nil {
		t.Error("want an error for an object of an unknown kind")
	}
}
