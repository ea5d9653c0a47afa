package client

import (
	"sync"

	"google.golang.org/grpc/resolver"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// scheme of the targets whose addresses come from EndpointSlices.
const scheme = "kube"

// directory knows the endpoints of Services and hands them to the connections. It is asked for addresses also while no connection
// needs them, when gRPC has put its resolver to rest.
type directory struct {
	mu        sync.Mutex
	services  map[types.NamespacedName][]discoveryv1.EndpointSlice
	resolvers map[*resolution]struct{}
}

func newDirectory() *directory {
	return &directory{services: map[types.NamespacedName][]discoveryv1.EndpointSlice{}, resolvers: map[*resolution]struct{}{}}
}

// set takes the slices of a Service, none when it is gone, hands them to the connections, and returns the former ones.
func (d *directory) set(service types.NamespacedName, endpoints []discoveryv1.EndpointSlice) []discoveryv1.EndpointSlice {
	d.mu.Lock()
	former := d.services[service]
	if len(endpoints) == 0 {
		delete(d.services, service)
	} else {
		d.services[service] = endpoints
	}
	var affected []*resolution
	for r := range d.resolvers {
		if r.place.service == service {
			affected = append(affected, r)
		}
	}
	d.mu.Unlock()
	for _, r := range affected {
		r.push()
	}
	return former
}

func (d *directory) addresses(p place) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Addresses(d.services[p.service], p.port)
}

// resolve gives a connection the addresses of a place now, and after every change.
func (d *directory) resolve(p place, cc resolver.ClientConn) *resolution {
	r := &resolution{directory: d, place: p, cc: cc}
	d.mu.Lock()
	d.resolvers[r] = struct{}{}
	d.mu.Unlock()
	r.push()
	return r
}

// place is a port of a Service.
type place struct {
	service types.NamespacedName
	port    string
}

// resolution is the resolver of one connection.
type resolution struct {
	directory *directory
	place     place
	cc        resolver.ClientConn
	order     sync.Mutex // what is read last is pushed last
}

func (r *resolution) push() {
	r.order.Lock()
	defer r.order.Unlock()
	var state resolver.State
	for _, address := range r.directory.addresses(r.place) {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
	}
	// The error of an empty list says nothing new, and the next change comes by itself.
	_ = r.cc.UpdateState(state)
}

// ResolveNow implements resolver.Resolver. There is nothing to ask: changes come by themselves.
func (r *resolution) ResolveNow(resolver.ResolveNowOptions) {}

// Close implements resolver.Resolver.
func (r *resolution) Close() {
	r.directory.mu.Lock()
	defer r.directory.mu.Unlock()
	delete(r.directory.resolvers, r)
}
