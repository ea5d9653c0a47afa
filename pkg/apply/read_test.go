package apply

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

func manyConfigMaps(n int) []Object {
	var all []Object
	for i := range n {
		all = append(all, newConfigMap(fmt.Sprint("a", i), "1"))
	}
	return all
}

// liveReads returns the expected requests of n reads.
func liveReads(n int) string { return fmt.Sprintf("live=%d apply=0 patch=0", n) }

// restartWithOldOwner restarts the Applier an hour after the creation of the owner.
func (a *testApplier) restartWithOldOwner() {
	a.Helper()
	a.owner.CreationTimestamp = metav1.NewTime(a.clock.Now().Add(-time.Hour))
	a.restart()
}

func TestApplyListsManyObjectsAfterRestart(t *testing.T) {
	all := manyConfigMaps(2 * listThreshold)
	a := newTestApplier(t)
	a.expectApply(fmt.Sprintf("live=0 apply=%d patch=0", len(all)), all...)
	changed := a.get("a3")
	changed.Data["key"] = "theirs"
	a.must(a.server.Update(t.Context(), changed, client.FieldOwner("them")))
	a.restartWithOldOwner()
	a.expectApply(oneApply, all...) // the changed object
	if a.seen["list"] != 1 {
		t.Errorf("unexpected requests: %v", a.seen)
	}
	if got := a.get("a3").Data["key"]; got != "1" {
		t.Errorf("got value %s, want 1", got)
	}
	a.expectApply(noRequests, all...)
	if a.seen["list"] != 0 {
		t.Errorf("got requests %v, want no list: the Applier has records of all objects", a.seen)
	}
}

// The snapshot is stale for an object that was changed later.
func TestApplyReadsObjectChangedAfterList(t *testing.T) {
	all := manyConfigMaps(listThreshold)
	a := newTestApplier(t)
	a.expectApply(fmt.Sprintf("live=0 apply=%d patch=0", len(all)), all...)
	a.restartWithOldOwner()
	a.expectApply(noRequests, all[0])
	changed := a.get("a3")
	changed.Data["key"] = "theirs"
	a.must(a.server.Update(t.Context(), changed, client.FieldOwner("them")))
	a.expectApply(readAndApply, all...)
	if got := a.get("a3").Data["key"]; got != "1" {
		t.Errorf("got value %s, want 1", got)
	}
	a.snapshots.Range(func(key, snapshot any) bool {
		snapshot.(func() *sync.Map)().Range(func(name, _ any) bool {
			t.Errorf("the snapshot of %v in %v was not released", name, key)
			return true
		})
		return true
	})
}

func TestApplyReadsFewObjectsWithoutList(t *testing.T) {
	a := newTestApplier(t)
	few := manyConfigMaps(listThreshold - 1)
	a.must(a.Apply(t.Context(), a.owner, few))
	a.restartWithOldOwner()
	a.expectApply(liveReads(len(few)), few...)
	if a.seen["list"] != 0 {
		t.Errorf("unexpected requests: %v", a.seen)
	}
}

func TestApplyReadsObjectsIfListFails(t *testing.T) {
	a := newTestApplier(t)
	all := manyConfigMaps(listThreshold)
	a.must(a.Apply(t.Context(), a.owner, all))
	a.restartWithOldOwner()
	a.failing["list"] = errors.New("not now")
	a.expectApply(liveReads(len(all)), all...)
}

func newSecret(name string) Object {
	return Object{Config: corev1ac.Secret(name, "ns").WithType(corev1.SecretTypeOpaque).WithData(map[string][]byte{"password": []byte("x")})}
}

// The values of Secrets are not stored, so Secrets are not listed. A Secret in Object.Existing is read again only if it is stale.
func TestApplyDoesNotListSecrets(t *testing.T) {
	var all []Object
	for i := range listThreshold {
		all = append(all, newSecret(fmt.Sprint("a", i)))
	}
	a := newTestApplier(t)
	a.must(a.Apply(t.Context(), a.owner, all))
	a.restartWithOldOwner()
	a.expectApply(liveReads(len(all)), all...)
	if a.seen["list"] != 0 {
		t.Errorf("unexpected requests: %v", a.seen)
	}
	a.restartWithOldOwner()
	live := &corev1.Secret{}
	a.must(a.server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a0"}, live))
	all[0].Existing = live
	a.expectApply(noRequests, all[0])
	a.restartWithOldOwner()
	live.ResourceVersion = "0"
	a.expectApply(oneRead, all[0])
}

func TestOwnerIndex(t *testing.T) {
	index := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, OwnerIndexers())
	a := newTestApplier(t)
	a.must(a.Apply(t.Context(), a.owner, manyConfigMaps(2)))
	for _, name := range []string{"owner", "a0", "a1"} {
		a.must(index.Add(a.get(name)))
	}
	foreign := a.get("a0")
	foreign.Name, foreign.Labels = "foreign", nil
	a.must(index.Add(foreign))
	found, err := index.IndexKeys("field:"+OwnerIndex, "ns/owner-uid")
	if err != nil || len(found) != 2 {
		t.Errorf("found %v, error %v, want 2 objects", found, err)
	}
}

func TestTransformKeepsMetadata(t *testing.T) {
	object := existingConfigMap(func(c *corev1.ConfigMap) { c.Labels = names.Labels("test") })
	object.OwnerReferences = append(object.OwnerReferences, ownerReference("owner", "uid", true))
	before := object.DeepCopy()
	transform(t, object)
	if object.Namespace != before.Namespace || object.OwnerReferences[0].String() != before.OwnerReferences[0].String() || !HasComponentLabels(object, "test") {
		t.Errorf("the transform changed %v to %v", before, object)
	}
}
