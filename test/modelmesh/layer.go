package modelmesh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
)

// Intervals and delays of the routing layer.
const (
	failureExpiry = 15 * time.Minute // until an instance retries a failed load
	failureCheck  = 6 * time.Minute  // interval of the check for expired failures
	afterOutage   = 16 * time.Second // until models can be registered after an outage of the store
	startDelay    = 500 * time.Millisecond
	firstRound    = 105 * time.Second // until the leader first loads models without an instance
	nextRound     = 7 * time.Minute
	leaseTime     = 23 * time.Second
	loadThreads   = 4
)

// LayerOptions of [NewLayer]. Zero durations default to those of the routing layer.
type LayerOptions struct {
	// Namespace is reported to the loader.
	Namespace string
	// Etcd is the data of the Secret model-serving-etcd of the pods, Service their MM_SERVICE_NAME.
	Etcd    map[string][]byte
	Service string
	// Store replaces etcd; nil means etcd.
	Store Store
	// Loader loads models; nil means [ByPath].
	Loader Loader
	// Unload is called when an instance unloads a model, and when a load failed or was cancelled; may be nil. The context ends with
	// the layer.
	Unload func(context.Context, Load)
	Clock  clock.Clock
	Log    logr.Logger

	// FailureExpiry and FailureCheck set when a failure expires, AfterOutage how long writes fail after an outage,
	// StartDelay how long a new instance is unreachable. FirstRound is the delay of the first round of the leader.
	FailureExpiry, FailureCheck, AfterOutage, StartDelay, FirstRound time.Duration
	// Capacity is that of an instance in MiB, 0 for no limit; Size returns the size of a loaded model in MiB.
	Capacity int
	Size     func(Load) int
}

// Layer is the routing layer of one namespace with all its instances. It caches the store in memory; a new layer continues from
// the stored state.
type Layer struct {
	meshpb.UnimplementedModelMeshServer

	options LayerOptions
	clock   clock.Clock
	store   Store
	ctx     context.Context // ends with Close, and every load with it
	stop    context.CancelFunc
	running sync.WaitGroup

	mu           sync.Mutex
	closed       bool
	instances    map[string]*instance
	started      int // number of instances so far
	constraints  constraints
	vmodels      map[string]*vmodel
	models       map[string]*model
	modelCopies  map[string]map[string]*modelCopy // by concrete model and instance
	failedCopies map[string]failedCopy            // by concrete model, until its instance unloads it
	calls        map[string]int
	// lastOutage is the time of the last failed request to the store. storeWiped disables the updates of the memory after a wipe.
	lastOutage           time.Time
	retrying, storeWiped bool
}

// NewLayer opens the routing layer of a namespace. It has no instances.
func NewLayer(options LayerOptions) (*Layer, error) {
	setDefaults(&options)
	l := &Layer{
		options: options, clock: options.Clock, store: options.Store, instances: map[string]*instance{},
		modelCopies: map[string]map[string]*modelCopy{}, failedCopies: map[string]failedCopy{}, calls: map[string]int{},
	}
	if l.store == nil {
		s, err := openEtcd(options.Etcd, options.Service)
		if err != nil {
			return nil, err
		}
		l.store = s
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	if err := l.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the registered models: %w", err), l.Close())
	}
	l.after(options.FirstRound, l.loadMissing)
	return l, nil
}

func setDefaults(o *LayerOptions) {
	if o.Loader == nil {
		o.Loader = ByPath
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&o.FailureExpiry, failureExpiry}, {&o.FailureCheck, failureCheck}, {&o.AfterOutage, afterOutage},
		{&o.StartDelay, startDelay}, {&o.FirstRound, firstRound}} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
}

// Close aborts all loads immediately, as a crash of all pods does.
func (l *Layer) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.running.Wait()
	if err := l.store.Close(); err != nil {
		return fmt.Errorf("closing the connection to etcd: %w", err)
	}
	return nil
}

// after calls a function with the layer locked after a delay, unless the layer has been closed.
func (l *Layer) after(delay time.Duration, function func()) {
	l.running.Go(func() {
		select {
		case <-l.ctx.Done():
		case <-l.clock.After(delay):
			l.mu.Lock()
			defer l.mu.Unlock()
			if !l.closed {
				function()
			}
		}
	})
}

// Calls returns how often each method has been called.
func (l *Layer) Calls() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.calls)
}

// SetConstraints sets the document type_constraints of the namespace. For an invalid document it returns an error and changes nothing.
func (l *Layer) SetConstraints(document []byte) error {
	c, err := parseConstraints(document)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.constraints = c
	return nil
}

// lockForCall counts a call and locks the layer, even if it returns an error; the caller unlocks it. Without a live instance it
// returns an error.
func (l *Layer) lockForCall(method string) error {
	l.mu.Lock()
	l.calls[method]++
	for _, i := range l.instances {
		if i.alive() && !l.closed {
			return nil
		}
	}
	return status.Error(codes.Unavailable, "there is no instance")
}
