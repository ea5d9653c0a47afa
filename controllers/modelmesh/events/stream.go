// Package events tells which models changed in the routing layers of ModelMesh, by watching the keys that these keep in etcd.
// Nothing is ever written there.
//
// The [Stream] has a watch for every namespace that it was asked to look at. Each is a small machine of its own: it lists, watches
// from there on, and starts over when etcd forgot its place; when etcd is away it tries again after growing pauses. Who listens
// hears of every model that there is when a watch starts, and of every one that went while no watch ran.
package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// keysVModels and keysRegistry are the values of the label "keys".
const keysVModels, keysRegistry = "vmodels", "registry"

var watching = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_modelmesh_etcd_watching",
	Help: "1 while the manager watches the ModelMesh keys of a namespace in etcd, 0 while the watch fails and is retried, by namespace and keys (vmodels, registry).",
}, []string{"namespace", "keys"})

// Options of a Stream. All are required.
type Options struct {
	// Home is the namespace of the controller, whose keys stand without their namespace.
	Home string
	// Clock measures the pauses after trouble.
	Clock clock.Clock
	// Log gets errors, each kind in a row once.
	Log logr.Logger
}

// Stream watches etcd for any number of namespaces. It is a manager Runnable; before Start and after its end it only remembers what
// it is given. All methods are safe for concurrent use, and none of them but Grant waits for etcd.
type Stream struct {
	Options
	// Listeners are called with every event, several at a time and some more than once.
	singleton.Listeners[Event]
	dial func(data map[string][]byte) (etcd, error)

	mu      sync.Mutex
	common  line
	spaces  map[string]*space // by namespace
	ctx     context.Context   // that of Start, nil before and afterwards
	watches sync.WaitGroup
}

// line is a connection to an etcd; the zero value is none.
type line struct {
	secret map[string][]byte
	client etcd
}

// space is what is watched for one namespace.
type space struct {
	service string
	// own is the connection of a namespace with an etcd of its own.
	own line
	// stop ends the watches, nil where none run.
	stop context.CancelFunc
	// vmodels and registry are the watches that ran last, nil before the first ones.
	vmodels, registry *watch
}

// rest stops the watches, and has them shown no more.
func (s *space) rest(namespace string) {
	if s.stop != nil {
		s.stop()
		s.stop = nil
		watching.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
	}
}

// etcd is what is needed of a client.
type etcd interface {
	reader
	RootPrefix() string
	Ensure(ctx context.Context, account meshetcd.Account) error
	Close() error
}

// NewStream returns a stream that watches nothing.
func NewStream(o Options) *Stream {
	return &Stream{
		Options: o, spaces: map[string]*space{},
		dial: func(data map[string][]byte) (etcd, error) { return meshetcd.New(data) },
	}
}

// Connect takes the data of the controller's etcd Secret; nil is none, and the watches rest. The same data again changes nothing,
// other data restarts the watches with them. An error says what is wrong with the data; the former connection stays in force then.
func (s *Stream) Connect(data map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connect(&s.common, data, func() {
		for namespace, space := range s.spaces {
			if space.own.client == nil {
				s.restart(namespace, space)
			}
		}
	})
}

// Grant makes an account in the etcd of the controller.
func (s *Stream) Grant(ctx context.Context, account meshetcd.Account) error {
	s.mu.Lock()
	client := s.common.client
	s.mu.Unlock()
	if client == nil {
		return errors.New("there is no connection to etcd")
	}
	return client.Ensure(ctx, account)
}

// ConnectOwn takes the data of the Secret of a namespace that has an etcd of its own; nil says that it shares the controller's again.
// Otherwise it is like Connect. It may come before Ensure, and is forgotten with Forget.
func (s *Stream) ConnectOwn(namespace string, data map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	into := s.space(namespace)
	return s.connect(&into.own, data, func() { s.restart(namespace, into) })
}

// connect replaces a connection by one for data, unless it was made for the same, and restarts what goes over it.
func (s *Stream) connect(at *line, data map[string][]byte, restart func()) error {
	former, next := *at, line{}
	switch {
	case data == nil && former.client == nil, data != nil && former.client != nil && maps.EqualFunc(former.secret, data, slices.Equal):
		return nil
	case data != nil:
		client, err := s.dial(data)
		if err != nil {
			return err
		}
		next = line{secret: maps.Clone(data), client: client}
	}
	*at = next
	restart()
	s.hangUp(former)
	return nil
}

// hangUp closes a connection over which nothing is watched any more.
func (s *Stream) hangUp(l line) {
	if l.client == nil {
		return
	}
	if err := l.client.Close(); err != nil {
		s.Log.Error(err, "The former connection to etcd was not closed cleanly")
	}
}

// Ensure watches the models of a namespace, behind the Service of the given name.
func (s *Stream) Ensure(namespace, service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if service == "" {
		return
	}
	into := s.space(namespace)
	if into.service == service {
		return
	}
	into.service = service
	s.restart(namespace, into)
}

// space is that of a namespace, a new one if need be.
func (s *Stream) space(namespace string) *space {
	if s.spaces[namespace] == nil {
		s.spaces[namespace] = &space{}
	}
	return s.spaces[namespace]
}

// Forget ends the watch of a namespace.
func (s *Stream) Forget(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, found := s.spaces[namespace]; found {
		known.rest(namespace)
		s.hangUp(known.own)
		delete(s.spaces, namespace)
	}
}

// Start implements manager.Runnable. When it returns nothing runs any more.
func (s *Stream) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	for namespace, space := range s.spaces {
		s.restart(namespace, space)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.ctx = nil
	s.end()
	s.mu.Unlock()
	s.watches.Wait()
	return nil
}

// end ends all watches and closes all connections.
func (s *Stream) end() {
	for namespace, space := range s.spaces {
		space.rest(namespace)
		s.hangUp(space.own)
		space.own = line{}
	}
	s.hangUp(s.common)
	s.common = line{}
}

// restart runs the two watches of a namespace, if there is a connection. They know what the former ones knew, so that what is gone
// from a new etcd, or from behind a new Service, is noticed.
func (s *Stream) restart(namespace string, into *space) {
	into.rest(namespace)
	client, home := s.common.client, s.Home
	if into.own.client != nil {
		client, home = into.own.client, namespace // its prefix is that of the namespace already
	}
	if s.ctx == nil || client == nil || into.service == "" {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	base := Base(client.RootPrefix(), home, namespace, into.service)
	begin := func(w watch, keys string, former *watch) *watch {
		w.client, w.clock, w.log, w.emit = client, s.Clock, s.Log.WithValues("namespace", namespace), s.Notify
		w.done, w.state = make(chan struct{}), watching.WithLabelValues(namespace, keys)
		s.watches.Go(func() {
			defer close(w.done)
			w.inherit(former)
			w.run(ctx)
		})
		return &w
	}
	into.stop = cancel
	into.vmodels = begin(watch{prefix: base + vmodels, describe: vmodelEvent(namespace)}, keysVModels, into.vmodels)
	into.registry = begin(watch{prefix: base + registry, describe: registryEvent(namespace), keysOnly: true}, keysRegistry, into.registry)
}

// vmodelEvent reads an event from a vmodel.
func vmodelEvent(namespace string) func(string, []byte) (Event, error) {
	return func(id string, value []byte) (Event, error) {
		owner, err := ownerOf(value)
		return Event{Source: owner, Namespace: namespace, Name: id}, err
	}
}

// registryEvent reads an event from the id of a concrete model.
func registryEvent(namespace string) func(string, []byte) (Event, error) {
	return func(id string, _ []byte) (Event, error) {
		source, name, ok := splitID(id)
		if !ok {
			return Event{}, fmt.Errorf("the id of a concrete model is not <name>__<source>-<hash>: %s", id)
		}
		return Event{Source: source, Namespace: namespace, Name: name}, nil
	}
}
