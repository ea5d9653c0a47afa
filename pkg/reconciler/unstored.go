package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// unstoredRetry is the shortest pause after a status that the API server does not store: until the object or its CRD changes, no reconcile
// can make progress.
const unstoredRetry = time.Minute

var errUnstored = errors.New("the API server does not store this status")

// RejectedStatuses remembers, for each object of one kind, which status fields the API server did not store, such as those that an older CRD does
// not have. What differs in nothing else is not sent again for the same version of the object.
// The zero value is empty.
type RejectedStatuses struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]unstored
	said    sets.Set[string]
}

type unstored struct {
	version string
	relists int64 // the count when it was noted
	fields  sets.Set[string]
}

// relists counts how often informers of custom resources had to list again.
var relists atomic.Int64

// RecordRelist lets statuses that were not stored be sent once more, since the CRD may have changed.
func RecordRelist() { relists.Add(1) }

// Covers reports whether two statuses of an object, as it was read and as it shall be, differ only in what was not stored.
func (u *RejectedStatuses) Covers(before, after client.Object) bool {
	u.mu.Lock()
	known, found := u.objects[client.ObjectKeyFromObject(before)]
	u.mu.Unlock()
	if !found || known.version != before.GetResourceVersion() || known.relists != relists.Load() {
		return false
	}
	for field := range differences(before, after) {
		if !slices.ContainsFunc(known.fields.UnsortedList(), func(k string) bool {
			return field == k || strings.HasPrefix(field, k+".") || strings.HasPrefix(field, k+"[")
		}) {
			return false
		}
	}
	return true
}

// Note compares a status that was sent with the object that the API server answered, and logs fields that it did not store once.
func (u *RejectedStatuses) Note(ctx context.Context, c client.Client, sent, answer client.Object) {
	fields := differences(answer, sent)
	name := client.ObjectKeyFromObject(sent)
	u.mu.Lock()
	defer u.mu.Unlock()
	if fields.Len() == 0 {
		delete(u.objects, name)
		return
	}
	if u.objects == nil {
		u.objects, u.said = map[types.NamespacedName]unstored{}, sets.Set[string]{}
	}
	u.objects[name] = unstored{version: answer.GetResourceVersion(), relists: relists.Load(), fields: fields}
	if !u.said.HasAll(fields.UnsortedList()...) {
		u.said = u.said.Union(fields)
		log.FromContext(ctx).Error(errUnstored, "Apply the CustomResourceDefinitions of this release, or find the admission webhook that changes the status",
			"customResourceDefinition", definition(c, answer), "fields", sets.List(fields))
	}
}

// Forget drops what is remembered of an object that is gone.
func (u *RejectedStatuses) Forget(name types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.objects, name)
}

// definition returns the name of the CRD of an object, or its kind where that is not known.
func definition(c client.Client, object client.Object) string {
	kind, err := c.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return kind.GroupKind().String()
	}
	return mapping.Resource.GroupResource().String()
}

// differences returns the paths of the status fields in which two objects differ, such as "status.conditions[].reason".
func differences(a, b client.Object) sets.Set[string] {
	out := sets.Set[string]{}
	first, errFirst := runtime.DefaultUnstructuredConverter.ToUnstructured(statusOf(a))
	second, errSecond := runtime.DefaultUnstructuredConverter.ToUnstructured(statusOf(b))
	if errFirst == nil && errSecond == nil {
		compare("status", first, second, out)
	}
	return out
}

// statusOf returns the status of a Go type of a custom resource. The rest of the object may be a thousand times as large.
func statusOf(object client.Object) any {
	return reflect.ValueOf(object).Elem().FieldByName("Status").Addr().Interface()
}

func compare(path string, a, b any, out sets.Set[string]) {
	if reflect.DeepEqual(a, b) {
		return
	}
	mapA, isMapA := a.(map[string]any)
	mapB, isMapB := b.(map[string]any)
	listA, isListA := a.([]any)
	listB, isListB := b.([]any)
	switch {
	case isMapA && isMapB:
		keys := maps.Clone(mapA)
		maps.Copy(keys, mapB)
		for key := range keys {
			compare(path+"."+key, mapA[key], mapB[key], out)
		}
	case isListA && isListB && len(listA) == len(listB):
		for i := range listA {
			compare(path+"[]", listA[i], listB[i], out)
		}
	default:
		out.Insert(path)
	}
}
