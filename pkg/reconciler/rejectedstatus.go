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

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var errStatusRejected = errors.New("the API server does not store this status")

// RejectedStatuses stores, for each object of one kind, the status fields that the API server dropped, such as those that an older CRD
// lacks. A status that differs only in these fields is not sent again for the same resourceVersion. The zero value is empty.
type RejectedStatuses struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]rejectedStatus
	logged  sets.Set[string]
}

type rejectedStatus struct {
	version     string
	relistCount int64
	fields      sets.Set[string]
}

// relistCount is the number of relists of the informers of custom resources.
var relistCount atomic.Int64

// RecordRelist allows rejected statuses to be sent once more, since the CRD may have changed.
func RecordRelist() { relistCount.Add(1) }

// Covers reports whether the status of an object differs from the original only in rejected fields.
func (s *RejectedStatuses) Covers(original, obj client.Object) bool {
	s.mu.Lock()
	rejected, found := s.objects[client.ObjectKeyFromObject(original)]
	s.mu.Unlock()
	if !found || rejected.version != original.GetResourceVersion() || rejected.relistCount != relistCount.Load() {
		return false
	}
	for field := range statusDiff(original, obj) {
		if !slices.ContainsFunc(rejected.fields.UnsortedList(), func(r string) bool {
			return field == r || strings.HasPrefix(field, r+".") || strings.HasPrefix(field, r+"[")
		}) {
			return false
		}
	}
	return true
}

// Record compares a status that was sent with the response of the API server, and logs each rejected field once.
func (s *RejectedStatuses) Record(ctx context.Context, c client.Client, sent, response client.Object) {
	fields := statusDiff(response, sent)
	name := client.ObjectKeyFromObject(sent)
	s.mu.Lock()
	defer s.mu.Unlock()
	if fields.Len() == 0 {
		delete(s.objects, name)
		return
	}
	if s.objects == nil {
		s.objects, s.logged = map[types.NamespacedName]rejectedStatus{}, sets.Set[string]{}
	}
	s.objects[name] = rejectedStatus{version: response.GetResourceVersion(), relistCount: relistCount.Load(), fields: fields}
	if !s.logged.HasAll(fields.UnsortedList()...) {
		s.logged = s.logged.Union(fields)
		log.FromContext(ctx).Error(errStatusRejected, "Apply the CustomResourceDefinitions of this release, or find the admission webhook that changes the status",
			"customResourceDefinition", resourceName(c, response), "fields", sets.List(fields))
	}
}

// Forget removes the entry of a deleted object.
func (s *RejectedStatuses) Forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
}

// resourceName returns the name of the CRD of an object.
func resourceName(c client.Client, object client.Object) string {
	kind, err := c.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind) // correct for all our kinds
	return resource.GroupResource().String()
}

// statusDiff returns the paths of the status fields in which two objects differ, such as "status.conditions[].reason".
func statusDiff(a, b client.Object) sets.Set[string] {
	paths := sets.Set[string]{}
	statusA, errA := runtime.DefaultUnstructuredConverter.ToUnstructured(statusOf(a))
	statusB, errB := runtime.DefaultUnstructuredConverter.ToUnstructured(statusOf(b))
	if errA == nil && errB == nil {
		diff("status", statusA, statusB, paths)
	}
	return paths
}

// statusOf returns only the status, because the rest of the object may be much larger to convert.
func statusOf(object client.Object) any {
	return reflect.ValueOf(object).Elem().FieldByName("Status").Addr().Interface()
}

func diff(path string, a, b any, paths sets.Set[string]) {
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
			diff(path+"."+key, mapA[key], mapB[key], paths)
		}
	case isListA && isListB && len(listA) == len(listB):
		for i := range listA {
			diff(path+"[]", listA[i], listB[i], paths)
		}
	default:
		paths.Insert(path)
	}
}
