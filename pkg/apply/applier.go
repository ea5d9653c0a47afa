// Package apply creates, updates and prunes the child objects of controllers by server-side apply, with one field owner per component.
//
// No request is sent for an unchanged object. The Applier stores the resourceVersion of its last write and a hash of the managed fields
// entry of its field owner. The API server removes a field from that entry as soon as another client changes its value, so an unchanged
// hash proves that all applied fields keep their values. Mutating admission webhooks are the exception. If the kind has a
// metadata.generation they raise it, and the object is then read and compared. After a restart each live object is compared with the
// desired one. Many objects of one kind and namespace are read by a single list.
//
// Objects are applied in stages, see Stage. Workloads are not applied while one of their prerequisites fails.
//
// An existing object that this component did not write is not adopted unless Object.AdoptIf allows it: see ForeignError.
package apply

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Options configure an Applier.
type Options struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server, without a cache: the manager's GetAPIReader.
	Live client.Reader
	// FieldOwner is the field manager of every write.
	FieldOwner string
	// Component is the value of names.ComponentLabel on every applied object, and of the component metric label.
	Component string
	// LegacyManagers are the field managers under which legacy operators wrote the objects by update or client-side apply.
	// When such an object is adopted, FieldOwner takes over the fields of these managers, so that undesired fields are pruned.
	LegacyManagers []string
	// StripAnnotations are annotations of legacy operators that are removed from adopted objects, whichever client owns them.
	StripAnnotations []string
	// Finalizer is the finalizer of owners whose Unowned objects this component deletes; empty for none.
	Finalizer string
	// FullObjectKinds lists the kinds that the cache holds as typed objects. The cache holds other kinds as metadata.
	FullObjectKinds []schema.GroupVersionKind
	// Indexed reports whether the cache has the index OwnerIndex.
	Indexed bool
	// MaxParallel is the number of objects of one stage that Apply writes at the same time; 0 means 1.
	MaxParallel int
	// Clock measures the lag of the cache, the time of deletions and the age of owners; nil is the real clock.
	Clock clock.PassiveClock
}

// Applier applies the objects of one component. It is safe for concurrent use if calls for the same object never overlap. Work queues
// ensure that: they are keyed by owner, or by namespace for cluster-scoped owners.
type Applier struct {
	Options
	records      recordStore
	snapshots    sync.Map    // functions that call loadSnapshot once, by kind and namespace
	omitTimeouts atomic.Bool // the API server rejected timeouts of HTTPRoutes
	startTime    time.Time
}

// New returns an Applier without records.
func New(o Options) *Applier {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Applier{Options: o, startTime: o.Clock.Now()}
}

// hashSeed seeds all hashes of this process. They are never stored in the cluster.
var hashSeed = maphash.MakeSeed()

// recordKey identifies a child of an owner.
type recordKey struct {
	owner types.UID
	Key
}

// record is the state of a child after its last write or read.
type record struct {
	desiredHash uint64    // of the desired object
	uid         types.UID // of the live object
	version     string    // resourceVersion of the response
	time        time.Time // of the response
	ownFields   string    // digest of the managed fields entry of FieldOwner
	// generation is 0 for kinds without one. Mutating webhooks of other clients raise it without a change of ownFields.
	generation int64
	// mutationHash is the hash of a response that differs from the request; 0 for none.
	mutationHash uint64
}

// exists reports whether the record holds a response. An empty record is stored after a failed apply: the state of the object is unknown.
func (r record) exists() bool { return !r.time.IsZero() }

// isOf reports whether the record describes a cached object, which is not nil and was not recreated since.
func (r record) isOf(cached client.Object) bool {
	return r.exists() && cached != nil && cached.GetUID() == r.uid
}

// recordStore holds a record for each recordKey.
type recordStore struct{ sync.Map }

// get returns a record, and whether there is one: this process read or wrote the object, or failed to apply it.
func (s *recordStore) get(owner types.UID, k Key) (r record, attempted bool) {
	value, attempted := s.Load(recordKey{owner, k})
	r, _ = value.(record)
	return r, attempted
}

func (s *recordStore) deleteIf(matches func(recordKey) bool) {
	s.Range(func(k, _ any) bool {
		if matches(k.(recordKey)) {
			s.Delete(k)
		}
		return true
	})
}

// Forget deletes the records of an owner. Call it when the owner is deleted.
func (a *Applier) Forget(owner types.UID) {
	a.records.deleteIf(func(k recordKey) bool { return k.owner == owner })
}

// ForgetNamespace deletes the records of all objects in a namespace. Call it when the namespace is deleted or no object in it is desired.
func (a *Applier) ForgetNamespace(namespace string) {
	a.records.deleteIf(func(k recordKey) bool { return k.Namespace == namespace })
}

// legacyListedKey is the key of an empty record that exists if the legacy objects of an owner need not be listed. A key of a kind without a
// name is that of an empty record that exists once the legacy objects of this kind have been listed.
var legacyListedKey Key

// Version returns the uid and resourceVersion of a child after its last write or read; both are empty if unknown.
func (a *Applier) Version(owner types.UID, kind schema.GroupVersionKind, name types.NamespacedName) (types.UID, string) {
	last, _ := a.records.get(owner, Key{kind, name})
	return last.uid, last.version
}

func (a *Applier) storeRecord(o owner, c *child, response *unstructured.Unstructured, mutationHash uint64) {
	a.records.Store(recordKey{o.GetUID(), c.key}, record{
		desiredHash:  c.desiredHash,
		uid:          response.GetUID(),
		version:      response.GetResourceVersion(),
		time:         a.Clock.Now(),
		ownFields:    digestOf(response.GetManagedFields(), a.FieldOwner),
		generation:   response.GetGeneration(),
		mutationHash: mutationHash,
	})
}

var (
	writes = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_apply_writes_total",
		Help: "Write requests for child objects, by component, kind and verb (apply, adopt, delete, patch, create).",
	}, []string{"component", "kind", "verb"})
	skipped = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_apply_skipped_total",
		Help: "Child objects that already had their desired state, so that no request was sent, by component and kind.",
	}, []string{"component", "kind"})
)

// send counts and sends a write request. It records the change if the request succeeds.
func (a *Applier) send(ctx context.Context, verb, kind string, change func(*Changes), request func() error) error {
	writes.WithLabelValues(a.Component, kind, verb).Inc()
	err := request()
	if err == nil {
		recordChange(ctx, change)
	}
	return err
}

func (a *Applier) countSkipped(kind string) { skipped.WithLabelValues(a.Component, kind).Inc() }

// Changes records the successful writes in one context, and when Apply must be called again. Its fields must not be read during a call of
// Apply.
type Changes struct {
	mu sync.Mutex
	// Created, Updated and Deleted are the numbers of requests. The adoption of an object may take two.
	Created, Updated, Deleted int
	// RequeueAfter is the time after which Apply must be called again even if no watch event arrives; 0 for none.
	RequeueAfter time.Duration
	// outer is the Changes of the parent context; it records the same writes.
	outer *Changes
}

// Functions that count one request.
func created(c *Changes) { c.Created++ }
func updated(c *Changes) { c.Updated++ }
func deleted(c *Changes) { c.Deleted++ }

// Any reports whether an object was written.
func (c *Changes) Any() bool { return c.Created+c.Updated+c.Deleted > 0 }

type changesKey struct{}

// RecordChanges returns a context that records changes.
func RecordChanges(ctx context.Context) (context.Context, *Changes) {
	outer, _ := ctx.Value(changesKey{}).(*Changes)
	c := &Changes{outer: outer}
	return context.WithValue(ctx, changesKey{}, c), c
}

// recordChange updates all Changes of the context.
func recordChange(ctx context.Context, update func(*Changes)) {
	for c, _ := ctx.Value(changesKey{}).(*Changes); c != nil; c = c.outer {
		c.mu.Lock()
		update(c)
		c.mu.Unlock()
	}
}

// requeueAfter records when Apply must be called again. The shortest time counts.
func requeueAfter(ctx context.Context, after time.Duration) {
	recordChange(ctx, func(c *Changes) {
		if c.RequeueAfter == 0 || after < c.RequeueAfter {
			c.RequeueAfter = after
		}
	})
}
