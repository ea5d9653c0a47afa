package apply

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestApplyUsesRecordWhileCacheLags(t *testing.T) {
	b := newTestApplier(t)
	b.expectApply(oneApply, newConfigMap("a", "1"))
	stale := b.get("a")
	b.expectApply(oneApply, newConfigMap("a", "2"))
	b.cached = func(_ string, into client.Object) error {
		into.SetUID(stale.UID)
		into.SetResourceVersion(stale.ResourceVersion)
		return nil // no labels and no managed fields, as before the write
	}
	b.expectApply(noRequests, newConfigMap("a", "2"))
	b.cached = func(name string, _ client.Object) error {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	b.expectApply(oneRead, newConfigMap("a", "2")) // it may have been deleted, so it is read
}

// After a restore of etcd the object and its resourceVersion are older than the last write.
func TestApplyReadsAfterRestoreOfEtcd(t *testing.T) {
	b := newTestApplier(t)
	b.expectApply(oneApply, newConfigMap("a", "1"))
	b.expectApply(oneApply, newConfigMap("a", "2"))
	child := Key{configMapKind, types.NamespacedName{Namespace: "ns", Name: "a"}}
	known, _ := b.records.get(b.owner.UID, child)
	known.version = "1000"
	b.records.Store(recordKey{b.owner.UID, child}, known)
	object := b.get("a")
	object.Data["key"] = "1"
	b.must(b.server.Update(t.Context(), object, client.FieldOwner("restore")))

	b.clock.SetTime(b.clock.Now().Add(maxCacheLag - time.Millisecond))
	b.expectApply(noRequests, newConfigMap("a", "2"))
	b.clock.SetTime(b.clock.Now().Add(time.Millisecond))
	b.expectApply(readAndApply, newConfigMap("a", "2"))
	if got := b.get("a").Data["key"]; got != "2" {
		t.Errorf("got value %s, want 2", got)
	}
	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	b.expectApply(noRequests, newConfigMap("a", "2"))
}
