package apply

import (
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ownership is the kind of owner reference of an applied object.
type Ownership int

const (
	// Controlled objects have a controller reference with blockOwnerDeletion. They are deleted with their owner.
	Controlled Ownership = iota
	// Shared objects have a plain owner reference for each owner. They are deleted with the last owner.
	Shared
	// Unowned objects have no owner reference and outlive their owner, because they hold data.
	Unowned
)

// Object is the desired state of one object, with the options of its apply.
type Object struct {
	// Config is a typed apply configuration, or the result of client.ApplyConfigurationFromUnstructured. It is not modified. The Applier
	// adds labels, owner references and the uid. Secrets must use data: the API server never returns stringData, so such
	// a Secret would be written again after each restart.
	Config runtime.ApplyConfiguration
	// Ownership is the kind of owner reference; the zero value is Controlled.
	Ownership Ownership
	// AdoptIf reports whether an existing object of that name without a marker of this component is adopted. Nil adopts
	// none: the object is reported as a *ForeignError.
	AdoptIf func(live *unstructured.Unstructured) bool
	// DropOwnerReferences reports whether an owner reference of the existing object is removed, such as those to legacy resources of the
	// platform. A controller reference among them does not make the object foreign. Nil removes none.
	DropOwnerReferences func(metav1.OwnerReference) bool
	// NeverDelete protects an object whose data may have no copy, such as a generated password or key. It is never deleted to be
	// recreated, even if its immutable fields differ. PersistentVolumeClaims are always protected.
	NeverDelete bool
	// Version is the resourceVersion that Config is based on. An apply to another version fails with a conflict, which protects later
	// changes of other clients, such as the replicas set by an autoscaler. Empty applies to any version.
	Version string
	// Existing is the object if the caller has just read it from the API server; nil otherwise.
	Existing client.Object
	// IgnoreIfForeign accepts an existing foreign object of that name without an error and leaves it unchanged. It costs a read
	// in each reconcile, since the cache does not hold foreign objects.
	IgnoreIfForeign bool
}

// Desired lists objects in the order in which they are applied.
type Desired []Object

// Add appends objects that the owner controls.
func (d *Desired) Add(configs ...runtime.ApplyConfiguration) {
	for _, config := range configs {
		*d = append(*d, Object{Config: config})
	}
}

// Deployment returns the Deployment with a name, nil if there is none.
func (d Desired) Deployment(name string) *appsv1ac.DeploymentApplyConfiguration {
	for _, o := range d {
		if config, ok := o.Config.(*appsv1ac.DeploymentApplyConfiguration); ok && ptr.Deref(config.Name, "") == name {
			return config
		}
	}
	return nil
}

// Options configure an Applier.
type Options struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server, without a cache: the manager's GetAPIReader.
	Live client.Reader
	// FieldOwner is the field manager of every write.
	FieldOwner string
	// Component is the value of names.ComponentLabel on every written object, and of the component metric label.
	Component string
	// LegacyManagers are the field managers under which legacy operators wrote the objects by update or client-side apply.
	// When such an object is adopted FieldOwner takes their fields over, so that unwanted fields are pruned.
	LegacyManagers []string
	// StripAnnotations are annotations of legacy operators that are removed from adopted objects, whichever client owns them.
	StripAnnotations []string
	// Finalizer is the finalizer with which this component deletes Unowned objects; empty for none.
	Finalizer string
	// FullObjectKinds lists the kinds that the cache holds as typed objects; it holds metadata of all others.
	FullObjectKinds []schema.GroupVersionKind
	// Indexed reports whether the cache has the index OwnerIndex.
	Indexed bool
	// Clock is the clock for the lag of the cache; nil is the real clock.
	Clock clock.PassiveClock
}

// Applier applies the objects of one component. It is safe for concurrent use if calls for the same object never overlap. Work queues
// ensure that: they are keyed by owner, or by namespace for cluster-scoped owners.
type Applier struct {
	Options
	legacyManagers  sets.Set[string]
	fullObjectKinds sets.Set[schema.GroupVersionKind]
	records         recordStore
	snapshots       sync.Map    // *snapshot by unversionedKey
	omitTimeouts    atomic.Bool // see detectUnsupportedTimeouts
	// sharedMu serialises the work on Shared objects. All references of the component have one field owner, so two concurrent
	// applies to the same object would remove each other's owner reference.
	sharedMu  sync.Mutex
	startTime time.Time
}

// New returns an Applier without records.
func New(o Options) *Applier {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Applier{
		Options:         o,
		legacyManagers:  sets.New(o.LegacyManagers...).Insert(o.FieldOwner),
		fullObjectKinds: sets.New(o.FullObjectKinds...),
		startTime:       o.Clock.Now(),
	}
}
