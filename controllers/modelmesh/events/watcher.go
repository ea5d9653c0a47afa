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

var watchingGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_modelmesh_etcd_watching",
	Help: "1 while the manager watches the ModelMesh keys of a namespace in etcd, 0 while the watch fails and is retried, by namespace and keys (vmodels, registry).",
}, []string{"namespace", "keys"})

// Options of a Stream. All are required.
type Options struct {
	// Home is the namespace of the controller, whose keys stand without their namespace.
	OperatorNamespace string
	// Clock measures the pauses after trouble.
	Clock clock.Clock
	// Log gets errors, each kind in a row once.
	Log logr.Logger
}

// Stream watches etcd for any number of namespaces. It is a manager Runnable; before Start and after its end it only remembers what
// it is given. All methods are safe for concurrent use, and none of them but Grant waits for etcd.
type Watcher struct {
	Options
	// Listeners are called with every event, several at a time and some more than once.
	singleton.Listeners[Event]
	dial func(data map[string][]byte) (etcdClient, error)

	mu         sync.Mutex
	shared     connection
	namespaces map[string]*namespaceWatch // by namespace
	ctx        context.Context            // that of Start, nil before and afterwards
	watches    sync.WaitGroup
}

// line is a connection to an etcd; the zero value is none.
type connection struct {
	secret map[string][]byte
	client etcdClient
}

// space is what is watched for one namespace.
type namespaceWatch struct {
	service string
	// own is the connection of a namespace with an etcd of its own.
	own connection
	// stop ends the watches, nil where none run.
	cancel context.CancelFunc
	// vmodels and registry are the watches that ran last, nil before the first ones.
	vmodels, registry *prefixWatch
}

// rest stops the watches, and has them shown no more.
func (s *namespaceWatch) stop(namespace string) {
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
		watchingGauge.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
	}
}

// etcd is what is needed of a client.
type etcdClient interface {
	etcdReader
	RootPrefix() string
	Ensure(ctx context.Context, account meshetcd.Account) error
	Close() error
}

// NewStream returns a stream that watches nothing.
func NewWatcher(o Options) *Watcher {
	return &Watcher{
		Options: o, namespaces: map[string]*namespaceWatch{},
		dial: func(data map[string][]byte) (etcdClient, error) { return meshetcd.New(data) },
	}
}

// Connect takes the data of the controller's etcd Secret; nil is none, and the watches rest. The same data again changes nothing,
// other data restarts the watches with them. An error says what is wrong with the data; the former connection stays in force then.
func (w *Watcher) Connect(data map[string][]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.setConnection(&w.shared, data, func() {
		for namespace, space := range w.namespaces {
			if space.own.client == nil {
				w.restartWatches(namespace, space)
			}
		}
	})
}

// Grant makes an account in the etcd of the controller.
func (w *Watcher) Grant(ctx context.Context, account meshetcd.Account) error {
	w.mu.Lock()
	client := w.shared.client
	w.mu.Unlock()
	if client == nil {
		return errors.New("there is no connection to etcd")
	}
	return client.Ensure(ctx, account)
}

// ConnectOwn takes the data of the Secret of a namespace that has an etcd of its own; nil says that it shares the controller's again.
// Otherwise it is like Connect. It may come before Ensure, and is forgotten with Forget.
func (w *Watcher) ConnectOwn(namespace string, data map[string][]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	into := w.ensureNamespace(namespace)
	return w.setConnection(&into.own, data, func() { w.restartWatches(namespace, into) })
}

// connect replaces a connection by one for data, unless it was made for the same, and restarts what goes over it.
func (w *Watcher) setConnection(at *connection, data map[string][]byte, restart func()) error {
	former, next := *at, connection{}
	switch {
	case data == nil && former.client == nil, data != nil && former.client != nil && maps.EqualFunc(former.secret, data, slices.Equal):
		return nil
	case data != nil:
		client, err := w.dial(data)
		if err != nil {
			return err
		}
		next = connection{secret: maps.Clone(data), client: client}
	}
	*at = next
	restart()
	w.closeConnection(former)
	return nil
}

// hangUp closes a connection over which nothing is watched any more.
func (w *Watcher) closeConnection(l connection) {
	if l.client == nil {
		return
	}
	if err := l.client.Close(); err != nil {
		w.Log.Error(err, "The former connection to etcd was not closed cleanly")
	}
}

// Ensure watches the models of a namespace, behind the Service of the given name.
func (w *Watcher) Ensure(namespace, service string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if service == "" {
		return
	}
	into := w.ensureNamespace(namespace)
	if into.service == service {
		return
	}
	into.service = service
	w.restartWatches(namespace, into)
}

// space is that of a namespace, a new one if need be.
func (w *Watcher) ensureNamespace(namespace string) *namespaceWatch {
	if w.namespaces[namespace] == nil {
		w.namespaces[namespace] = &namespaceWatch{}
	}
	return w.namespaces[namespace]
}

// Forget ends the watch of a namespace.
func (w *Watcher) Forget(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, found := w.namespaces[namespace]; found {
		known.stop(namespace)
		w.closeConnection(known.own)
		delete(w.namespaces, namespace)
	}
}

// Start implements manager.Runnable. When it returns nothing runs any more.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for namespace, space := range w.namespaces {
		w.restartWatches(namespace, space)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.ctx = nil
	w.stopAll()
	w.mu.Unlock()
	w.watches.Wait()
	return nil
}

// end ends all watches and closes all connections.
func (w *Watcher) stopAll() {
	for namespace, space := range w.namespaces {
		space.stop(namespace)
		w.closeConnection(space.own)
		space.own = connection{}
	}
	w.closeConnection(w.shared)
	w.shared = connection{}
}

// restartWatches starts both watches of a namespace, if there is a connection. They inherit the state of the previous watches, so that keys
// missing from a new etcd, or from behind a new Service, are reported.
func (w *Watcher) restartWatches(namespace string, into *namespaceWatch) {
	into.stop(namespace)
	client, home := w.shared.client, w.OperatorNamespace
	if into.own.client != nil {
		client, home = into.own.client, namespace // its prefix is that of the namespace already
	}
	if w.ctx == nil || client == nil || into.service == "" {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	base := KeyPrefix(client.RootPrefix(), home, namespace, into.service)
	begin := func(watch prefixWatch, keys string, previous *prefixWatch) *prefixWatch {
		watch.client, watch.clock, watch.log, watch.notify = client, w.Clock, w.Log.WithValues("namespace", namespace), w.Notify
		watch.done, watch.gauge = make(chan struct{}), watchingGauge.WithLabelValues(namespace, keys)
		w.watches.Go(func() {
			defer close(watch.done)
			watch.copyState(previous)
			watch.run(ctx)
		})
		return &watch
	}
	into.cancel = cancel
	into.vmodels = begin(prefixWatch{prefix: base + vmodelsPrefix, parseEvent: vmodelEventParser(namespace)}, keysVModels, into.vmodels)
	into.registry = begin(prefixWatch{prefix: base + registryPrefix, parseEvent: registryEventParser(namespace), keysOnly: true}, keysRegistry, into.registry)
}

// vmodelEvent reads an event from a vmodel.
func vmodelEventParser(namespace string) func(string, []byte) (Event, error) {
	return func(id string, value []byte) (Event, error) {
		owner, err := parseOwner(value)
		return Event{Source: owner, Namespace: namespace, Name: id}, err
	}
}

// registryEvent reads an event from the id of a concrete model.
func registryEventParser(namespace string) func(string, []byte) (Event, error) {
	return func(id string, _ []byte) (Event, error) {
		source, name, ok := parseModelID(id)
		if !ok {
			return Event{}, fmt.Errorf("the id of a concrete model is not <name>__<source>-<hash>: %s", id)
		}
		return Event{Source: source, Namespace: namespace, Name: name}, nil
	}
}
