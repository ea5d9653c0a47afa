package mesh

import (
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc/resolver"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Scheme of the targets that the directory resolves: `kube:///name[.namespace[...]]:port`, with the port's number or name.
const Scheme = "kube"

// directory knows the endpoints of Services and is the resolver of every connection. It is asked for addresses also while no
// connection needs them, when gRPC has put its resolver to rest.
type directory struct {
	home string // the namespace of targets that name none

	mu        sync.Mutex
	services  map[types.NamespacedName][]discoveryv1.EndpointSlice
	resolvers map[*resolution]struct{}
}

func newDirectory(home string) *directory {
	return &directory{
		home:     home,
		services: map[types.NamespacedName][]discoveryv1.EndpointSlice{}, resolvers: map[*resolution]struct{}{},
	}
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

// Scheme implements resolver.Builder.
func (d *directory) Scheme() string { return Scheme }

// Build implements resolver.Builder. The connection gets what is known now, and every change from then on.
func (d *directory) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	p, err := parsePlace(target.Endpoint(), d.home)
	if err != nil {
		return nil, err
	}
	r := &resolution{directory: d, place: p, cc: cc}
	d.mu.Lock()
	d.resolvers[r] = struct{}{}
	d.mu.Unlock()
	r.push()
	return r, nil
}

// place is a port of a Service.
type place struct {
	service types.NamespacedName
	port    string
}

func parsePlace(text, home string) (place, error) {
	host, port, found := strings.Cut(text, ":")
	name, rest, _ := strings.Cut(host, ".")
	if !found || name == "" || port == "" || strings.Contains(port, ":") {
		return place{}, fmt.Errorf("target %q is not of the form name[.namespace]:port", text)
	}
	namespace, _, _ := strings.Cut(rest, ".")
	if namespace == "" {
		namespace = home
	}
	return place{service: types.NamespacedName{Namespace: namespace, Name: name}, port: port}, nil
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
