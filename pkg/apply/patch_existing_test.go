package apply

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestPatchExistingSendsChanges(t *testing.T) {
	b := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	live := b.get("a")
	for range 2 { // the second time there is nothing left to send
		b.must(b.PatchExisting(t.Context(), live, func() { live.Data["key"] = "1" }))
	}
	if b.seen["patch"] != 1 {
		t.Errorf("unexpected requests: %v", b.seen)
	}
	if data := b.get("a").Data; data["key"] != "1" || data["old"] != "1" {
		t.Errorf("unexpected data: %v", data)
	}
}

func TestPatchExistingIgnoresTerminatingObject(t *testing.T) {
	b := newTestApplier(t, existingConfigMap(func(c *corev1.ConfigMap) { c.Finalizers = []string{"test.opendatahub.io/hold"} }))
	b.must(b.server.Delete(t.Context(), b.get("a")))
	live := b.get("a")
	b.must(b.PatchExisting(t.Context(), live, func() { live.Data["key"] = "1" }))
	if b.seen["patch"] != 0 {
		t.Errorf("unexpected requests: %v", b.seen)
	}
}

func TestPatchExistingReportsConflict(t *testing.T) {
	b := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	live, foreign := b.get("a"), b.get("a")
	foreign.Data["key"] = "theirs"
	b.must(b.server.Update(t.Context(), foreign))
	err := b.PatchExisting(t.Context(), live, func() { live.Data["key"] = "1" })
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Name != "a" || !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict that names the object", err)
	}
}

func TestPatchExistingRejectsUnknownKind(t *testing.T) {
	b := newTestApplier(t)
	if err := b.PatchExisting(t.Context(), &unknown{}, func() {}); err == nil {
		t.Error("want an error for an object of an unknown kind")
	}
}
