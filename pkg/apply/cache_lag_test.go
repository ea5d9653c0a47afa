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
	b.applies(blind, settings("a", "1"))
	stale := b.get("a")
	b.applies(blind, settings("a", "2"))
	b.cached = func(_ string, into client.Object) error {
		into.SetUID(stale.UID)
		into.SetResourceVersion(stale.ResourceVersion)
		return nil // no labels, no managed fields: a state long before our write
	}
	b.applies(quiet, settings("a", "2"))
	b.cached = func(name string, _ client.Object) error {
		return apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	b.applies(looks, settings("a", "2")) // it may be gone, so it is checked, and found as it should be
}

// After a restore of etcd the object and its resourceVersion are older than the last write.
func TestApplyReadsAfterRestoreOfEtcd(t *testing.T) {
	b := newTestApplier(t)
	b.applies(blind, settings("a", "1"))
	b.applies(blind, settings("a", "2"))
	child := Key{configMapKind, types.NamespacedName{Namespace: "ns", Name: "a"}}
	known, _ := b.records.get(b.owner.UID, child)
	known.version = "1000"
	b.records.Store(recordKey{b.owner.UID, child}, known)
	object := b.get("a")
	object.Data["key"] = "1"
	b.must(b.server.Update(t.Context(), object, client.FieldOwner("restore")))

	b.clock.SetTime(b.clock.Now().Add(maxCacheLag - time.Millisecond))
	b.applies(quiet, settings("a", "2"))
	b.clock.SetTime(b.clock.Now().Add(time.Millisecond))
	b.applies(both, settings("a", "2"))
	if got := b.get("a").Data["key"]; got != "2" {
		t.Errorf("the value is %s", got)
	}
	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	b.applies(quiet, settings("a", "2"))
}
