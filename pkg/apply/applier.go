package apply

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ownership says how a written object is tied to the object it is written for.
type Ownership int

const (
	// Controlled objects carry a controller reference that blocks the deletion of the owner: they go with it.
	Controlled Ownership = iota
	// Shared objects carry a plain owner reference beside those of other owners: they go with the last of them.
	Shared
	// Unowned objects carry no owner reference and outlive the owner: data.
	Unowned
)

// Object is one object as it shall be.
type Object struct {
	// Config is a typed apply configuration, or the result of client.ApplyConfigurationFromUnstructured. Labels,
	// owner references and uid are added by the Applier; the value itself is never changed. Secrets carry data, not
	// stringData: the API server never shows the latter, so it would be written again after every restart.
	Config runtime.ApplyConfiguration
	// Ownership ties the object to its owner; the zero value is Controlled.
	Ownership Ownership
	// AdoptIf decides whether a live object of that name that bears none of our marks may be taken over. Nil means
	// no: the object is reported as a *ForeignError.
	AdoptIf func(live *unstructured.Unstructured) bool
	// DropOwnerReferences decides which owner references go when a live object is taken over, such as those of the platform's older
	// resources. A controller among them does not make the object foreign. Nil means none.
	DropOwnerReferences func(metav1.OwnerReference) bool
	// NeverDelete says that the object holds what may be nowhere else, such as a password or a key that was made here. It is never
	// deleted to be recreated, also when it cannot become what it should be in any other way. Nor are claims.
	NeverDelete bool
	// Version is the resource version that Config was made from, for what must not be written over a later foreign change,
	// such as the count of an autoscaler. A write that finds another version fails with a conflict. Empty is any version.
	Version string
	// Existing is the object as the caller has just read it from the API server; nil when it has not.
	Existing client.Object
	// IgnoreIfForeign says that a live object of that name which is not ours serves as well: it is left alone, without an
	// error. Finding out costs a request in each reconcile, since the cache does not hold it.
	IgnoreIfForeign bool
}

// Desired lists objects in the order in which they are to be written.
type Desired []Object

// Add appends objects that the owner controls.
func (d *Desired) Add(configs ...runtime.ApplyConfiguration) {
	for _, config := range configs {
		*d = append(*d, Object{Config: config})
	}
}

// Deployment returns the Deployment of a name, nil where there is none.
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
	// Client reads from the cache and writes.
	Client client.Client
	// Existing reads from the API server, past the cache: the manager's GetAPIReader.
	Live client.Reader
	// FieldOwner is the manager name of every write.
	FieldOwner string
	// Component is the value of names.ComponentLabel on every written object, and of the component metric label.
	Component string
	// LegacyManagers are the manager names under which older operators updated or client-side applied the objects.
	// When such an object is adopted their fields become ours, so that those we do not want are pruned.
	LegacyManagers []string
	// StripAnnotations are annotations that older operators left and that are removed when an object is taken over, whichever client
	// owns them.
	StripAnnotations []string
	// FullObjectKinds lists the kinds which the cache holds as whole typed objects; all others are read as metadata.
	FullObjectKinds []schema.GroupVersionKind
	// Indexed says that the cache finds objects by their owners, see OwnerIndex.
	Indexed bool
	// Clock measures how long the cache lags; the real one when nil.
	Clock clock.PassiveClock
}

// Applier writes the objects of one component. It is safe for concurrent use, with the limit that all work for one object
// is done by one caller at a time, as work queues ensure: keyed by owner, or by namespace where owners are of cluster scope.
type Applier struct {
	Options
	legacy    sets.Set[string]
	whole     sets.Set[schema.GroupVersionKind]
	memory    memory
	snapshots snapshots
	older     sync.Map // kinds of newerFields whose field the API lacks
	// shared serialises the work on shared objects: the list of their owner references is read and written as one, under one field
	// owner, so two owners at the same object at the same time would drop each other's reference.
	shared sync.Mutex
	began  time.Time
}

// New returns an Applier that remembers nothing yet.
func New(o Options) *Applier {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Applier{
		Options:   o,
		legacy:    sets.New(o.LegacyManagers...).Insert(o.FieldOwner),
		whole:     sets.New(o.FullObjectKinds...),
		began:     o.Clock.Now(),
		memory:    memory{records: map[types.UID]map[key]record{}},
		snapshots: snapshots{of: map[place]*snapshot{}},
	}
}

// Forget drops all that is remembered about the objects of an owner. Call it when the owner is gone.
func (a *Applier) Forget(owner types.UID) {
	a.memory.forget(owner)
}
