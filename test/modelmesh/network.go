package modelmesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// headerTimeout limits the time for the header of a request.
const headerTimeout = 10 * time.Second

// Options of [Start].
type Options struct {
	// Config has the permissions of a cluster administrator.
	Config *rest.Config
	// Address on which the proxy listens; empty means a free port on loopback.
	Address string
	// Loader loads models in every namespace; nil means [ByPath].
	Loader Loader
	Log    logr.Logger
}

// Network has the routing layers of all namespaces of a cluster.
type Network struct {
	options Options
	cache   cache.Cache
	api     client.Reader
	server  *http.Server
	address string
	queue   workqueue.TypedRateLimitingInterface[string]
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	members map[string]*member
	calls   map[string]map[string]int // of closed layers
}

// Start reads the pods of a cluster, and returns when it has tried to open the routing layer of every namespace with ready pods.
func Start(ctx context.Context, options Options) (*Network, error) {
	n := &Network{
		options: options, members: map[string]*member{}, calls: map[string]map[string]int{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, 2*time.Second)),
	}
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	if err := n.connect(); err != nil {
		stop()
		return nil, err
	}
	n.running.Go(func() {
		if err := n.cache.Start(runCtx); err != nil {
			options.Log.Error(err, "The cache of pods stopped")
		}
	})
	if err := n.startRefreshing(ctx, runCtx); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return n, nil
}

// connect creates the clients of the cluster.
func (n *Network) connect() error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return fmt.Errorf("registering types: %w", err)
	}
	pods, err := labels.NewRequirement(serviceLabel, "exists", nil)
	if err != nil {
		return fmt.Errorf("selecting pods: %w", err)
	}
	n.cache, err = cache.New(n.options.Config, cache.Options{Scheme: scheme, ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}:       {Label: labels.NewSelector().Add(*pods)},
		&corev1.ConfigMap{}: {Field: fields.OneTermEqualSelector("metadata.name", constraintsName)},
	}})
	if err != nil {
		return fmt.Errorf("caching pods: %w", err)
	}
	if n.api, err = client.New(n.options.Config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return nil
}

// startRefreshing refreshes every namespace once, and then after errors and each change of its pods or its ConfigMap.
func (n *Network) startRefreshing(ctx, runCtx context.Context) error {
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.ConfigMap{}} {
		informer, err := n.cache.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watching pods and ConfigMaps: %w", err)
		}
		handler := toolscache.ResourceEventHandlerFuncs{
			AddFunc: n.enqueue, UpdateFunc: func(_, next any) { n.enqueue(next) }, DeleteFunc: n.enqueue,
		}
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watching pods and ConfigMaps: %w", err)
		}
		if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return fmt.Errorf("watching pods and ConfigMaps: %w", context.Cause(ctx))
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", n.listenAddress())
	if err != nil {
		return fmt.Errorf("listening as a proxy: %w", err)
	}
	n.address = listener.Addr().String()
	for n.queue.Len() > 0 {
		n.processNext(runCtx)
	}
	n.server = &http.Server{Handler: n, ReadHeaderTimeout: headerTimeout}
	n.running.Go(func() { _ = n.server.Serve(listener) }) // ends with Close
	n.running.Go(func() {
		for n.processNext(runCtx) {
		}
	})
	return nil
}

func (n *Network) listenAddress() string {
	if n.options.Address == "" {
		return "127.0.0.1:0"
	}
	return n.options.Address
}

func (n *Network) enqueue(object any) {
	if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		namespace, _, _ := toolscache.SplitMetaNamespaceKey(key)
		n.queue.Add(namespace)
	}
}

func (n *Network) processNext(ctx context.Context) bool {
	namespace, shutdown := n.queue.Get()
	if shutdown {
		return false
	}
	defer n.queue.Done(namespace)
	if err := n.refresh(ctx, namespace); err != nil {
		n.options.Log.Error(err, "Updating the routing layer for its pods failed", "namespace", namespace)
		n.queue.AddRateLimited(namespace)
		return true
	}
	n.queue.Forget(namespace)
	return true
}

// Env returns the environment variables with which a manager connects to the pods through the proxy, as NAME=value. Connections to
// loopback addresses, those of the API server and etcd of a test, do not use the proxy.
func (n *Network) Env() []string { return Env(n.address) }

// Env returns [Network.Env] for a network in another process whose proxy listens on the address.
func Env(address string) []string { return []string{"HTTPS_PROXY=http://" + address, "NO_PROXY="} }

// Address returns the address of the proxy.
func (n *Network) Address() string { return n.address }

// Calls returns how often each method has been called in a namespace.
func (n *Network) Calls(namespace string) map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[string]int{}
	add := func(more map[string]int) {
		for method, count := range more {
			out[method] += count
		}
	}
	add(n.calls[namespace])
	if m := n.members[namespace]; m != nil {
		add(m.layer.Calls())
	}
	return out
}

// Stop stops the proxy and all routing layers immediately, as a crash of all pods does. Their state remains in etcd.
func (n *Network) Stop(context.Context) error {
	var errs []error
	if n.server != nil {
		errs = append(errs, n.server.Close())
	}
	n.queue.ShutDown()
	n.stop()
	n.running.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for namespace, m := range n.members {
		errs = append(errs, m.close())
		delete(n.members, namespace)
	}
	return errors.Join(errs...)
}

func (n *Network) memberFor(namespace string) *member {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.members[namespace]
}
