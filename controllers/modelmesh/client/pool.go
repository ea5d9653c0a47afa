package client

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

var clientsGauge = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
	Name: "odh_platform_modelmesh_clients",
	Help: "Number of namespaces for whose ModelMesh routing layer the manager has a client.",
})

// Pool holds the clients of all namespaces. It is safe for concurrent use. It is a manager Runnable that closes all connections at shutdown.
type Pool struct {
	// Listeners are called with the namespace when its client or the ready addresses of its Service change.
	singleton.Listeners[string]
	log logr.Logger

	mu      sync.Mutex
	clients map[string]*connection
	// endpointSlices holds the EndpointSlices of all Services, including those without a client.
	endpointSlices map[types.NamespacedName][]discoveryv1.EndpointSlice
	closed         bool
}

// NewPool returns an empty pool.
func NewPool(log logr.Logger) *Pool {
	return &Pool{log: log, clients: map[string]*connection{}, endpointSlices: map[types.NamespacedName][]discoveryv1.EndpointSlice{}}
}

// Client returns the client of a namespace, and false if it has none.
func (p *Pool) Client(namespace string) (Client, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, found := p.clients[namespace]
	return c, found
}

// Ensure connects the client of a namespace to a target. It does nothing if the target is unchanged. For an invalid target it returns an error
// and keeps the client.
func (p *Pool) Ensure(namespace string, target Target) error {
	p.mu.Lock()
	previous := p.clients[namespace]
	if p.closed || previous != nil && reflect.DeepEqual(previous.target, target) {
		p.mu.Unlock()
		return nil
	}
	next, err := dial(namespace, target)
	if err != nil {
		p.mu.Unlock()
		return fmt.Errorf("creating the client of namespace %s: %w", namespace, err)
	}
	next.setEndpointSlices(p.endpointSlices[next.serviceKey()])
	p.clients[namespace] = next
	clientsGauge.Set(float64(len(p.clients)))
	p.mu.Unlock()
	p.closeConnection(previous)
	p.Notify(namespace)
	return nil
}

// Forget closes the client of a namespace. Calls in flight fail.
func (p *Pool) Forget(namespace string) {
	p.mu.Lock()
	previous := p.clients[namespace]
	delete(p.clients, namespace)
	clientsGauge.Set(float64(len(p.clients)))
	p.mu.Unlock()
	if previous != nil {
		p.closeConnection(previous)
		p.Notify(namespace)
	}
}

func (p *Pool) closeConnection(c *connection) {
	if c == nil {
		return
	}
	if err := c.conn.Close(); err != nil {
		p.log.Error(err, "A connection to the routing layer was not closed cleanly", "namespace", c.namespace)
	}
}

// SetEndpointSlices sets the EndpointSlices of a Service. The list is empty if the Service was deleted. The caller must not modify it afterwards.
func (p *Pool) SetEndpointSlices(service types.NamespacedName, endpoints []discoveryv1.EndpointSlice) {
	p.mu.Lock()
	if len(endpoints) == 0 {
		delete(p.endpointSlices, service)
	} else {
		p.endpointSlices[service] = endpoints
	}
	c := p.clients[service.Namespace]
	changed := c != nil && c.target.Service == service.Name && c.setEndpointSlices(endpoints)
	p.mu.Unlock()
	if changed {
		p.Notify(service.Namespace)
	}
}

// Start implements manager.Runnable.
func (p *Pool) Start(ctx context.Context) error {
	<-ctx.Done()
	p.mu.Lock()
	p.closed = true
	clients := p.clients
	p.clients = map[string]*connection{}
	clientsGauge.Set(0)
	p.mu.Unlock()
	for _, c := range clients {
		p.closeConnection(c)
	}
	return nil
}
