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
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	stale := a.get("a")
	a.expectApply(oneApply, newConfigMap("a", "2"))
	a.cached = func(_ string, into client.Object) error {
		into.SetUID(stale.UID)
		into.SetResourceVersion(stale.ResourceVersion)
		return nil // its resourceVersion alone shows that it is stale: labels and managed fields are not set
	}
	a.expectApply(noRequests, newConfigMap("a", "2"))
	a.cached = func(name string, _ client.Object) error {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	a.expectApply(oneRead, newConfigMap("a", "2")) // it may have been deleted, so it is read
}

// After a restore of etcd the object and its resourceVersion are older than the last write.
func TestApplyReadsAfterRestoreOfEtcd(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	a.expectApply(oneApply, newConfigMap("a", "2"))
	child := Key{configMapKind, types.NamespacedName{Namespace: "ns", Name: "a"}}
	known, _ := a.records.get(a.owner.UID, child)
	known.version = "1000"
	a.records.Store(recordKey{a.owner.UID, child}, known)
	object := a.get("a")
	object.Data["key"] = "1"
	a.must(a.server.Update(t.Context(), object, client.FieldOwner("restore")))

	a.clock.SetTime(a.clock.Now().Add(maxCacheLag - time.Millisecond))
	a.expectApply(noRequests, newConfigMap("a", "2"))
	a.clock.SetTime(a.clock.Now().Add(time.Millisecond))
	a.expectApply(readAndApply, newConfigMap("a", "2"))
	if got := a.get("a").Data["key"]; got != "2" {
		t.Errorf("got value %s, want 2", got)
	}
	a.clock.SetTime(a.clock.Now().Add(time.Hour))
	a.expectApply(noRequests, newConfigMap("a", "2"))
}
