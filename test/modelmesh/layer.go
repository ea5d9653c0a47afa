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

	"github.com/odh-platform/odh-platform-operator/pkg/mesh/meshpb"
)

// failureExpiry is how long an instance that could not load a model is not asked again.
const failureExpiry = 10 * time.Minute

// LayerOptions of [NewLayer].
type LayerOptions struct {
	// Namespace is told to the loader.
	Namespace string
	// Etcd is the data of the Secret model-serving-etcd of the pods.
	Etcd map[string][]byte
	// Service is MM_SERVICE_NAME of the pods.
	Service string
	// Loader decides what becomes of loads; nil means [ByPath].
	Loader Loader
	Clock  clock.PassiveClock
	Log    logr.Logger
}

// Layer is the routing layer of one namespace: all its instances together. It keeps nothing but what is being loaded; the rest
// is in etcd, so that a new one continues where a former one ended.
type Layer struct {
	meshpb.UnimplementedModelMeshServer

	options LayerOptions
	store   *store
	ctx     context.Context // ends with Close, and every load with it
	stop    context.CancelFunc
	running sync.WaitGroup

	mu          sync.Mutex
	closed      bool
	instances   map[string]Instance
	constraints constraints
	loads       map[string]*load // by concrete model
	calls       map[string]int
}

// NewLayer opens the routing layer of a namespace. It has no instances yet.
func NewLayer(options LayerOptions) (*Layer, error) {
	if options.Loader == nil {
		options.Loader = ByPath
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	s, err := openStore(options.Etcd, options.Service)
	if err != nil {
		return nil, err
	}
	l := &Layer{options: options, store: s, instances: map[string]Instance{}, loads: map[string]*load{}, calls: map[string]int{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l, nil
}

// Close ends all loads at once, as the death of the pods does.
func (l *Layer) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.running.Wait()
	if err := l.store.close(); err != nil {
		return fmt.Errorf("closing the connection to etcd: %w", err)
	}
	return nil
}

// Calls returns how often each method has been called.
func (l *Layer) Calls() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.calls)
}

// SetConstraints takes the document type_constraints of the namespace. A broken one changes nothing.
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

// SetInstances says which pods run. Models that have lost their only copy are loaded elsewhere, if there is a place for them.
func (l *Layer) SetInstances(ctx context.Context, running []Instance) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	former := l.instances
	l.instances = map[string]Instance{}
	var errs []error
	for _, instance := range running {
		l.instances[instance.ID] = instance
		if _, known := former[instance.ID]; !known {
			errs = append(errs, l.store.put(ctx, keyInstances+instance.ID, map[string][]string{"labels": instance.Labels}))
		}
	}
	for id, run := range l.loads {
		if _, stays := l.instances[run.instance]; !stays {
			run.cancel()
			delete(l.loads, id)
		}
	}
	return errors.Join(append(errs, l.forgetGone(ctx))...)
}

// forgetGone removes instances that no longer run from the records.
func (l *Layer) forgetGone(ctx context.Context) error {
	known, err := list[struct{}](ctx, l.store, keyInstances)
	if err != nil {
		return err
	}
	for id := range known {
		if l.gone(id) {
			err = errors.Join(err, l.store.remove(ctx, keyInstances+id))
		}
	}
	models, listErr := list[model](ctx, l.store, keyModels)
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	for id, m := range models {
		wanted := len(m.Instances) > 0
		if !m.forget(l.gone, l.options.Clock.Now().Add(-failureExpiry)) {
			continue
		}
		err = errors.Join(err, l.store.put(ctx, keyModels+id, m))
		if wanted && len(m.Instances) == 0 {
			l.startLoad(id, m)
		}
	}
	return err
}

func (l *Layer) gone(instance string) bool {
	_, runs := l.instances[instance]
	return !runs
}

// enter counts a call and locks the layer; the caller unlocks it. A layer without instances answers nobody.
func (l *Layer) enter(method string) error {
	l.mu.Lock()
	l.calls[method]++
	if l.closed || len(l.instances) == 0 {
		return status.Error(codes.Unavailable, "there is no instance")
	}
	return nil
}

// describeModel returns the state of a concrete model.
func (l *Layer) describeModel(ctx context.Context, id string) (*meshpb.ModelStatusInfo, error) {
	m, err := read[model](ctx, l.store, keyModels+id)
	if err != nil {
		return nil, err
	}
	loadingIn, homeless := "", ""
	if run := l.loads[id]; run != nil {
		loadingIn = run.instance
	}
	if m != nil && len(l.constraints.homes(m.Type, l.instances)) == 0 {
		homeless = l.constraints.homeless(m.Type)
	}
	return describe(m, loadingIn, homeless), nil
}

func (l *Layer) describeVModel(ctx context.Context, v *vmodel) (*meshpb.VModelStatusInfo, error) {
	if v == nil {
		return describeV(nil, nil, nil), nil
	}
	active, err := l.describeModel(ctx, v.Active)
	if err != nil {
		return nil, err
	}
	target := active
	if v.Target != v.Active {
		if target, err = l.describeModel(ctx, v.Target); err != nil {
			return nil, err
		}
	}
	return describeV(v, active, target), nil
}
