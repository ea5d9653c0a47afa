package apply

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// A snapshot is a list of the managed objects of a kind and namespace. After a restart it replaces a read of each object. It only shows
// that an object is up to date in the version of the cache; all other objects are read. Secrets are not listed, because their
// values must not be stored in memory.
const (
	// listThreshold is the number of objects from which a list is cheaper than reads.
	listThreshold = 8
	// pageSize limits the number of objects that are decoded together.
	pageSize = 500
	// listLifetime is how long unused objects are stored. A start with thousands of owners takes minutes.
	listLifetime = 10 * time.Minute
)

var secretKind = schema.GroupKind{Kind: "Secret"}

// snapshotStore holds the snapshots by kind and namespace.
type snapshotStore struct {
	mu    sync.Mutex
	byKey map[unversionedKey]*snapshot
}

// snapshot holds the unused objects of one kind and namespace, as JSON by name.
type snapshot struct {
	load    sync.Once
	mu      sync.Mutex
	objects map[string][]byte
}

// matchesAfterRestart reports whether an object without a record is up to date, as far as cache and snapshot show.
func (a *Applier) matchesAfterRestart(ctx context.Context, o owner, c child) bool {
	if !a.predatesProcess(o) {
		return false
	}
	cached, err := a.getCached(ctx, c.key)
	if err != nil || cached == nil {
		return false
	}
	live := a.getListed(ctx, c)
	if live == nil || live.GetUID() != cached.GetUID() || live.GetResourceVersion() != cached.GetResourceVersion() ||
		live.GetDeletionTimestamp() != nil || a.checkForeign(o, c, live) != nil {
		return false
	}
	if operations, err := a.buildPreparationPatch(o, c, live); err != nil || len(operations) > 0 {
		return false
	}
	if upToDate, _, err := a.isUpToDate(o, c, live); err != nil || !upToDate {
		return false
	}
	a.countSkipped(c.key.Kind)
	a.storeRecord(o, c, live, 0)
	return true
}

// getListed returns Existing, or the object from the snapshot; nil if neither has it.
func (a *Applier) getListed(ctx context.Context, c child) *unstructured.Unstructured {
	if c.Existing != nil {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.Existing)
		if err != nil {
			return nil
		}
		return &unstructured.Unstructured{Object: content}
	}
	if c.key.GroupKind() == secretKind {
		return nil
	}
	snapshot := a.snapshots.get(unversionedKey{c.key.GroupKind(), types.NamespacedName{Namespace: c.key.Namespace}})
	snapshot.load.Do(func() { a.loadSnapshot(ctx, snapshot, c.key) })
	data := snapshot.pop(c.key.Name)
	live := &unstructured.Unstructured{}
	if data == nil || live.UnmarshalJSON(data) != nil {
		return nil
	}
	return live
}

func (s *snapshotStore) get(k unversionedKey) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[k] == nil {
		s.byKey[k] = &snapshot{}
	}
	return s.byKey[k]
}

func (s *snapshot) pop(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := s.objects[name]
	delete(s.objects, name)
	return data
}

// loadSnapshot lists the objects of the kind and namespace of a child, if the cache has listThreshold of them. Errors are ignored: the
// objects are then read one by one.
func (a *Applier) loadSnapshot(ctx context.Context, s *snapshot, k key) {
	inNamespace := client.InNamespace(k.Namespace)
	cached, err := a.listManaged(ctx, k.GroupVersionKind, inNamespace, client.Limit(listThreshold))
	if err != nil || len(cached) < listThreshold {
		return
	}
	objects := map[string][]byte{}
	page := &unstructured.UnstructuredList{}
	for more := true; more; more = page.GetContinue() != "" {
		next := page.GetContinue()
		page = &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		if a.Live.List(ctx, page, inNamespace, client.MatchingLabels(names.Labels(a.Component)), client.Limit(pageSize), client.Continue(next)) != nil {
			return
		}
		for i := range page.Items {
			if data, err := a.trimForComparison(&page.Items[i]).MarshalJSON(); err == nil {
				objects[page.Items[i].GetName()] = data
			}
		}
	}
	s.objects = objects
	time.AfterFunc(listLifetime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.objects = nil
	})
}

// trimForComparison removes the fields that isUpToDate ignores.
func (a *Applier) trimForComparison(object *unstructured.Unstructured) *unstructured.Unstructured {
	delete(object.Object, "status")
	if metadata, ok := object.Object["metadata"].(map[string]any); ok {
		entries, _ := metadata["managedFields"].([]any)
		metadata["managedFields"] = slices.DeleteFunc(entries, func(e any) bool { return lookup(e, "manager") != a.FieldOwner })
	}
	return object
}
