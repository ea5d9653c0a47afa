// Package events watches the keys of the ModelMesh routing layers in etcd and notifies listeners of models that changed. It writes no
// keys.
//
// The [Watcher] runs two watches per namespace. Each lists its keys, watches from the revision of the list, and lists again after any
// error, with exponential backoff. The first list notifies of every model. Each further list notifies of the changes since the last watch,
// deletions included.
package events

import (
	"context"
	"errors"
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

// Values of the label "keys".
const (
	keysVModels  = "vmodels"
	keysRegistry = "registry"
)

var watchingGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "odh_platform_modelmesh_etcd_watching",
	Help: "1 while the manager watches the ModelMesh keys of a namespace in etcd, 0 while the watch fails and is retried, by namespace and keys (vmodels, registry).",
}, []string{"namespace", "keys"})

// Options configures a Watcher. All fields are required.
type Options struct {
	// OperatorNamespace is the namespace of the operator. The keys of its models have no namespace prefix.
	OperatorNamespace string
	Clock             clock.Clock
	Log               logr.Logger
}

// Watcher watches etcd for any number of namespaces. It is a manager Runnable. The other methods may be called before Start, which starts
// the watches. All methods are safe for concurrent use. Only Grant waits for a response of etcd.
type Watcher struct {
	Options
	// Listeners are called concurrently, and more than once for some events.
	singleton.Listeners[Event]
	dial func(data map[string][]byte) (etcdClient, error)

	mu         sync.Mutex
	shared     connection
	namespaces map[string]*namespaceWatch // by namespace
	ctx        context.Context            // the context of Start; nil unless Start is running
	watches    sync.WaitGroup
}

// connection is an etcd client and the data of its Secret. client is nil if there is no connection.
type connection struct {
	secret map[string][]byte
	client etcdClient
}

// namespaceWatch holds the watches of one namespace.
type namespaceWatch struct {
	service string
	// own is the connection to a separate etcd of the namespace, if any.
	own connection
	// cancel stops the watches; nil if none run.
	cancel context.CancelFunc
	// vmodels and registry are the current or the last watches; nil before the first ones.
	vmodels, registry *prefixWatch
}

// stop stops the watches and deletes their metrics.
func (n *namespaceWatch) stop(namespace string) {
	if n.cancel != nil {
		n.cancel()
		n.cancel = nil
		watchingGauge.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
	}
}

// etcdClient is the subset of the etcd client that Watcher uses.
type etcdClient interface {
	etcdReader
	RootPrefix() string
	Ensure(ctx context.Context, account meshetcd.Account) error
	Close() error
}

// NewWatcher returns a watcher without namespaces.
func NewWatcher(o Options) *Watcher {
	return &Watcher{
		Options: o, namespaces: map[string]*namespaceWatch{},
		dial: func(data map[string][]byte) (etcdClient, error) { return meshetcd.New(data) },
	}
}

// Connect sets the data of the etcd Secret of the operator. It restarts the watches that use this connection if the data changed, and
// stops them if the data is nil. For invalid data it returns an error and keeps the connection.
func (w *Watcher) Connect(data map[string][]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.setConnection(&w.shared, data, func() {
		for namespace, watched := range w.namespaces {
			if watched.own.client == nil {
				w.restartWatches(namespace, watched)
			}
		}
	})
}

// Grant ensures that an account exists in the etcd of the operator.
func (w *Watcher) Grant(ctx context.Context, account meshetcd.Account) error {
	w.mu.Lock()
	client := w.shared.client
	w.mu.Unlock()
	if client == nil {
		return errors.New("there is no connection to etcd")
	}
	return client.Ensure(ctx, account)
}

// ConnectOwn is like Connect, but for the Secret of a namespace with a separate etcd. With nil data the namespace uses the operator's etcd.
// ConnectOwn may be called before Ensure; Forget closes the connection.
func (w *Watcher) ConnectOwn(namespace string, data map[string][]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	watched := w.ensureNamespace(namespace)
	return w.setConnection(&watched.own, data, func() { w.restartWatches(namespace, watched) })
}

// setConnection replaces a connection if its data changed, and restarts the watches that use it.
func (w *Watcher) setConnection(current *connection, data map[string][]byte, restart func()) error {
	previous, next := *current, connection{}
	switch {
	case data == nil && previous.client == nil, data != nil && previous.client != nil && maps.EqualFunc(previous.secret, data, slices.Equal):
		return nil
	case data != nil:
		client, err := w.dial(data)
		if err != nil {
			return err
		}
		next = connection{secret: maps.Clone(data), client: client}
	}
	*current = next
	restart()
	w.closeConnection(previous)
	return nil
}

// closeConnection closes a connection that no watch uses.
func (w *Watcher) closeConnection(c connection) {
	if c.client == nil {
		return
	}
	if err := c.client.Close(); err != nil {
		w.Log.Error(err, "Closing a connection to etcd failed")
	}
}

// Ensure watches the models of a namespace. service is the Service of its routing layer.
func (w *Watcher) Ensure(namespace, service string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if service == "" {
		return
	}
	watched := w.ensureNamespace(namespace)
	if watched.service == service {
		return
	}
	watched.service = service
	w.restartWatches(namespace, watched)
}

// ensureNamespace returns the namespaceWatch of a namespace, and adds one if it does not exist.
func (w *Watcher) ensureNamespace(namespace string) *namespaceWatch {
	if w.namespaces[namespace] == nil {
		w.namespaces[namespace] = &namespaceWatch{}
	}
	return w.namespaces[namespace]
}

// Forget stops the watches of a namespace.
func (w *Watcher) Forget(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watched, found := w.namespaces[namespace]; found {
		watched.stop(namespace)
		w.closeConnection(watched.own)
		delete(w.namespaces, namespace)
	}
}

// Start implements manager.Runnable. It returns after all watches have stopped.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for namespace, watched := range w.namespaces {
		w.restartWatches(namespace, watched)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.ctx = nil
	for namespace, watched := range w.namespaces {
		watched.stop(namespace)
		w.closeConnection(watched.own)
		watched.own = connection{}
	}
	w.closeConnection(w.shared)
	w.shared = connection{}
	w.mu.Unlock()
	w.watches.Wait()
	return nil
}

// restartWatches stops both watches of a namespace, and starts new ones if there are a connection and a Service. The new watches copy the
// known keys, to report keys that do not exist in a new etcd or for a new Service.
func (w *Watcher) restartWatches(namespace string, watched *namespaceWatch) {
	watched.stop(namespace)
	client, unprefixedNamespace := w.shared.client, w.OperatorNamespace
	if watched.own.client != nil {
		client, unprefixedNamespace = watched.own.client, namespace // the root prefix of a separate etcd belongs to the namespace
	}
	if w.ctx == nil || client == nil || watched.service == "" {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	base := KeyPrefix(client.RootPrefix(), unprefixedNamespace, namespace, watched.service)
	startWatch := func(watch prefixWatch, keys string, previous *prefixWatch) *prefixWatch {
		watch.client, watch.namespace, watch.clock, watch.log, watch.notify = client, namespace, w.Clock, w.Log.WithValues("namespace", namespace), w.Notify
		watch.done, watch.gauge = make(chan struct{}), watchingGauge.WithLabelValues(namespace, keys)
		w.watches.Go(func() {
			defer close(watch.done)
			watch.copyState(previous)
			watch.run(ctx)
		})
		return &watch
	}
	watched.cancel = cancel
	watched.vmodels = startWatch(prefixWatch{prefix: base + vmodelsPrefix, parse: parseVModel}, keysVModels, watched.vmodels)
	watched.registry = startWatch(prefixWatch{prefix: base + registryPrefix, parse: parseModelID, keysOnly: true}, keysRegistry, watched.registry)
}
