package meshevents

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/meshetcd"
)

// Options of a Stream. All are required.
type Options struct {
	// Home is the namespace of the controller, whose keys stand without their namespace.
	Home string
	// Clock measures the pauses after trouble.
	Clock clock.Clock
	// Log is told of trouble, once for each kind of trouble in a row.
	Log logr.Logger
}

// Stream watches etcd for any number of namespaces. It is a manager Runnable; before Start and after its end it only remembers what
// it is told. All methods are safe for concurrent use, and none of them waits for etcd.
type Stream struct {
	Options
	dial func(data map[string][]byte) (etcd, error)

	mu        sync.Mutex
	listeners []func(Event)
	secret    map[string][]byte
	client    etcd
	spaces    map[string]*space // by namespace
	ctx       context.Context   // that of Start, nil before and afterwards
	watches   sync.WaitGroup
}

// space is what is watched for one namespace.
type space struct {
	service string
	// stop ends the watches, nil where none run.
	stop context.CancelFunc
	// vmodels and registry are the watches that ran last, nil before the first ones.
	vmodels, registry *watch
}

func (s *space) rest() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// etcd is what is needed of a client.
type etcd interface {
	reader
	RootPrefix() string
	Close() error
}

// NewStream returns a stream that watches nothing.
func NewStream(o Options) *Stream {
	return &Stream{
		Options: o, spaces: map[string]*space{},
		dial: func(data map[string][]byte) (etcd, error) { return meshetcd.New(data) },
	}
}

// Subscribe registers a function that is told every event, several at a time and some more than once. It must not block.
func (s *Stream) Subscribe(listener func(Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, listener)
}

func (s *Stream) emit(event Event) {
	s.mu.Lock()
	listeners := s.listeners // never changed in place
	s.mu.Unlock()
	for _, tell := range listeners {
		tell(event)
	}
}

// Connect takes the data of the etcd Secret; nil is none, and all watches rest. The same data again changes nothing, other data
// starts every watch anew with them. An error says what is wrong with the data; the former connection stays in force then.
func (s *Stream) Connect(data map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil && maps.EqualFunc(s.secret, data, slices.Equal) {
		return nil
	}
	if data == nil {
		s.disconnect()
		return nil
	}
	client, err := s.dial(data)
	if err != nil {
		return err
	}
	s.disconnect()
	s.client, s.secret = client, maps.Clone(data)
	s.startAll()
	return nil
}

// disconnect ends all watches and the client.
func (s *Stream) disconnect() {
	for _, space := range s.spaces {
		space.rest()
	}
	if s.client == nil {
		return
	}
	if err := s.client.Close(); err != nil {
		s.Log.Error(err, "The former connection to etcd was not closed cleanly")
	}
	s.client, s.secret = nil, nil
}

// Ensure watches the models of a namespace, behind the Service of the given name.
func (s *Stream) Ensure(namespace, service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if service == "" {
		return
	}
	known, found := s.spaces[namespace]
	if !found {
		known = &space{}
		s.spaces[namespace] = known
	}
	if known.service == service {
		return
	}
	known.rest()
	known.service = service
	s.start(namespace, known)
}

// Forget ends the watch of a namespace.
func (s *Stream) Forget(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, found := s.spaces[namespace]; found {
		known.rest()
		delete(s.spaces, namespace)
	}
}

// Start implements manager.Runnable. When it returns nothing runs any more.
func (s *Stream) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	s.startAll()
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.ctx = nil
	s.disconnect()
	s.mu.Unlock()
	s.watches.Wait()
	return nil
}

func (s *Stream) startAll() {
	for namespace, space := range s.spaces {
		s.start(namespace, space)
	}
}

// start runs the two watches of a namespace, if there is somebody to ask. They know what the former ones knew, so that what is gone
// from a new etcd, or from behind a new Service, is noticed.
func (s *Stream) start(namespace string, into *space) {
	if s.ctx == nil || s.client == nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	base := Base(s.client.RootPrefix(), s.Home, namespace, into.service)
	begin := func(w watch, former *watch) *watch {
		w.client, w.clock, w.log, w.emit = s.client, s.Clock, s.Log.WithValues("namespace", namespace), s.emit
		w.done = make(chan struct{})
		s.watches.Go(func() {
			defer close(w.done)
			w.inherit(former)
			w.run(ctx)
		})
		return &w
	}
	into.stop = cancel
	into.vmodels = begin(watch{prefix: base + vmodels, describe: vmodelEvent(namespace)}, into.vmodels)
	into.registry = begin(watch{prefix: base + registry, describe: registryEvent(namespace), keysOnly: true}, into.registry)
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
