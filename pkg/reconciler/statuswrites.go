package reconciler

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var errStatusNotStored = errors.New("the API server does not store this status")

// StatusWrites stores the last status update of each object of one kind. It detects cached objects that are older than their update, and
// fields that the API server dropped, such as fields that an older CRD lacks. A status that differs only in dropped fields is not sent
// again for the same resourceVersion.
type StatusWrites struct {
	clock      clock.PassiveClock
	settleTime time.Duration

	mu      sync.Mutex
	objects map[types.NamespacedName]statusWrite
	logged  sets.Set[string]
}

// NewStatusWrites returns an empty StatusWrites. settleTime is the minimum time between two updates of an object that may wait; 0 for none.
func NewStatusWrites(clk clock.PassiveClock, settleTime time.Duration) *StatusWrites {
	return &StatusWrites{clock: clk, settleTime: settleTime, objects: map[types.NamespacedName]statusWrite{}, logged: sets.Set[string]{}}
}

type statusWrite struct {
	uid types.UID
	// at is the time of the update, or of the first call of Defer before any update. version is the resourceVersion of the response; empty
	// before the update.
	at          time.Time
	version     string
	relistCount int64
	dropped     sets.Set[string] // paths of fields that the response lacks or changes
}

// maxCacheLag limits how long after a status update an older version counts as stale. After a restore of etcd all versions are lower than
// the written one.
const maxCacheLag = 10 * time.Second

// lastWrite returns the last update of an object; the zero value if the stored one is of a deleted object of the same name.
func (s *StatusWrites) lastWrite(obj client.Object) statusWrite {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.objects[client.ObjectKeyFromObject(obj)]; last.uid == obj.GetUID() {
		return last
	}
	return statusWrite{}
}

// IsStale reports whether an object from the cache is older than its last status update.
func (s *StatusWrites) IsStale(obj client.Object) bool {
	last := s.lastWrite(obj)
	if last.version == "" || s.clock.Since(last.at) >= maxCacheLag {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), last.version)
	return err == nil && order < 0
}

// Defer returns how long an update that may wait must wait: until settleTime has passed since the last update or, if there is none, the
// first call.
func (s *StatusWrites) Defer(obj client.Object) time.Duration {
	last := s.lastWrite(obj)
	if last.at.IsZero() && s.settleTime > 0 {
		last = statusWrite{uid: obj.GetUID(), at: s.clock.Now()}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.objects[client.ObjectKeyFromObject(obj)] = last
	}
	return max(s.settleTime-s.clock.Since(last.at), 0)
}

// relistCount is the number of calls of RecordRelist.
var relistCount atomic.Int64

// RecordRelist allows statuses with dropped fields to be sent once more. Call it when a CRD may have changed.
func RecordRelist() { relistCount.Add(1) }

// Covers reports whether the status of an object differs from the original only in fields that the API server dropped from the last update.
func (s *StatusWrites) Covers(original, obj client.Object) bool {
	last := s.lastWrite(original)
	if last.dropped.Len() == 0 || last.version != original.GetResourceVersion() || last.relistCount != relistCount.Load() {
		return false
	}
	for field := range statusDiff(original, obj) {
		if !slices.ContainsFunc(last.dropped.UnsortedList(), func(r string) bool {
			return field == r || strings.HasPrefix(field, r+".") || strings.HasPrefix(field, r+"[")
		}) {
			return false
		}
	}
	return true
}

// Record stores an update. It compares the status that was sent with the response of the API server, and logs the dropped fields unless all
// of them were logged before.
func (s *StatusWrites) Record(ctx context.Context, c client.Client, sent, response client.Object) {
	fields := statusDiff(response, sent)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[client.ObjectKeyFromObject(sent)] = statusWrite{
		uid: response.GetUID(), at: s.clock.Now(), version: response.GetResourceVersion(), relistCount: relistCount.Load(), dropped: fields,
	}
	if !s.logged.HasAll(fields.UnsortedList()...) {
		s.logged = s.logged.Union(fields)
		log.FromContext(ctx).Error(errStatusNotStored, "Apply the CustomResourceDefinitions of this release, or find the admission webhook that changes the status",
			"customResourceDefinition", resourceName(c, response), "fields", sets.List(fields))
	}
}

// Forget removes the entry of a deleted object.
func (s *StatusWrites) Forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
}

// resourceName returns the name of the CRD of an object.
func resourceName(c client.Client, object client.Object) string {
	kind, _ := c.GroupVersionKindFor(object)            // fails only for a type that is not in the scheme: its requests fail too
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
