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

// A process that has just started remembers no object. Where its cache shows many of a kind in a namespace, they are compared with one
// list instead of a read of each. The list decides nothing but that an object is as it should be, in the version that the cache
// has: all else needs a read. Secrets are not listed, since their values must not stay in memory.
const (
	// worthAList is from how many objects on a list is cheaper.
	worthAList = 8
	// pageSize bounds how many objects are decoded at a time.
	pageSize = 500
	// listLifetime is how long objects are kept that nothing asks for. A start with thousands of owners takes minutes.
	listLifetime = 10 * time.Minute
)

var secretKind = schema.GroupKind{Kind: "Secret"}

// snapshots are the lists that were read, by kind and namespace.
type snapshots struct {
	mu sync.Mutex
	of map[place]*snapshot
}

// snapshot holds the objects of one kind in one namespace that nothing has asked for yet, as JSON by their names.
type snapshot struct {
	read    sync.Once
	mu      sync.Mutex
	objects map[string][]byte
}

// recognizes says whether an object that nothing is remembered of is as it should be, as far as that is known without a read of it.
func (a *Applier) recognizes(ctx context.Context, o owner, c child) bool {
	if !a.inherits(o) {
		return false
	}
	cached, err := a.cached(ctx, c.key)
	if err != nil || cached == nil {
		return false
	}
	live := a.seen(ctx, c)
	if live == nil || live.GetUID() != cached.GetUID() || live.GetResourceVersion() != cached.GetResourceVersion() ||
		live.GetDeletionTimestamp() != nil || a.claim(o, c, live) != nil {
		return false
	}
	if steps, err := a.preparation(o, c, live); err != nil || len(steps) > 0 {
		return false
	}
	if done, _, err := a.asDesired(o, c, live); err != nil || !done {
		return false
	}
	a.skip(c.key.Kind)
	a.remember(o, c, live, 0)
	return true
}

// seen returns an object as the caller has read it, or as it was listed; nil where neither has happened.
func (a *Applier) seen(ctx context.Context, c child) *unstructured.Unstructured {
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
	s := a.snapshots.at(place{c.key.GroupKind(), types.NamespacedName{Namespace: c.key.Namespace}})
	s.read.Do(func() { a.fill(ctx, s, c.key) })
	data := s.take(c.key.Name)
	live := &unstructured.Unstructured{}
	if data == nil || live.UnmarshalJSON(data) != nil {
		return nil
	}
	return live
}

func (s *snapshots) at(where place) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[where] == nil {
		s.of[where] = &snapshot{}
	}
	return s.of[where]
}

func (s *snapshot) take(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := s.objects[name]
	delete(s.objects, name)
	return data
}

// fill lists the objects of the kind and in the namespace of a child, if the cache has enough of them. Whatever fails costs no more
// than the reads that the list would have spared.
func (a *Applier) fill(ctx context.Context, s *snapshot, k key) {
	where := client.InNamespace(k.Namespace)
	few, err := a.labelledObjects(ctx, k.GroupVersionKind, where, client.Limit(worthAList))
	if err != nil || len(few) < worthAList {
		return
	}
	objects := map[string][]byte{}
	page := &unstructured.UnstructuredList{}
	for more := true; more; more = page.GetContinue() != "" {
		next := page.GetContinue()
		page = &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		if a.Live.List(ctx, page, where, client.MatchingLabels(names.Labels(a.Component)), client.Limit(pageSize), client.Continue(next)) != nil {
			return
		}
		for i := range page.Items {
			if data, err := a.shortened(&page.Items[i]).MarshalJSON(); err == nil {
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

// shortened takes from an object what the comparison does not look at.
func (a *Applier) shortened(object *unstructured.Unstructured) *unstructured.Unstructured {
	delete(object.Object, "status")
	if metadata, ok := object.Object["metadata"].(map[string]any); ok {
		entries, _ := metadata["managedFields"].([]any)
		metadata["managedFields"] = slices.DeleteFunc(entries, func(e any) bool { return entry(e, "manager") != a.FieldOwner })
	}
	return object
}
