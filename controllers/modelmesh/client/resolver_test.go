package client

import (
	"slices"
	"testing"

	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// callback is a connection that remembers what its resolver said.
type callback struct {
	states []resolver.State
}

func (c *callback) UpdateState(s resolver.State) error {
	c.states = append(c.states, s)
	if len(s.Endpoints) == 0 {
		return errBadState
	}
	return nil
}
func (c *callback) ReportError(error)                                    {}
func (c *callback) NewAddress([]resolver.Address)                        {}
func (c *callback) ParseServiceConfig(string) *serviceconfig.ParseResult { return nil }

var errBadState = ErrNoAddress // any error: gRPC refuses states without addresses

// last are the addresses that were said last, and how often something was said.
func (c *callback) last(t *testing.T, times int, want ...string) {
	t.Helper()
	if len(c.states) != times {
		t.Fatalf("told %d times, want %d: %v", len(c.states), times, c.states)
	}
	var got []string
	for _, endpoint := range c.states[times-1].Endpoints {
		got = append(got, endpoint.Addresses[0].Addr)
	}
	if !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
}

func resolve(d *directory) (*callback, resolver.Resolver) {
	cc := &callback{}
	return cc, d.resolve(place{service: fraud, port: "8033"}, cc)
}

// [modelmesh-53]
func TestResolversOfOneService(t *testing.T) {
	d, service := newDirectory(), fraud
	d.set(service, at(8033, "1.2.3.4"))

	one, first := resolve(d)
	one.last(t, 1, "1.2.3.4:8033")
	two, second := resolve(d)
	two.last(t, 1, "1.2.3.4:8033")
	one.last(t, 1, "1.2.3.4:8033")

	d.set(service, at(8033, "5.6.7.8", "1.2.3.4"))
	one.last(t, 2, "1.2.3.4:8033", "5.6.7.8:8033")
	two.last(t, 2, "1.2.3.4:8033", "5.6.7.8:8033")

	d.set(types.NamespacedName{Namespace: "elsewhere", Name: "modelmesh-serving"}, at(8033, "9.9.9.9"))
	first.ResolveNow(resolver.ResolveNowOptions{})
	one.last(t, 2, "1.2.3.4:8033", "5.6.7.8:8033")

	first.Close()
	d.set(service, nil)
	one.last(t, 2, "1.2.3.4:8033", "5.6.7.8:8033")
	two.last(t, 3)

	second.Close()
	d.set(service, at(8033, "1.2.3.4"))
	one.last(t, 2, "1.2.3.4:8033", "5.6.7.8:8033")
	two.last(t, 3)
	if len(d.resolvers) != 0 {
		t.Errorf("%d resolvers are still known", len(d.resolvers))
	}
}

// [modelmesh-53] M33
func TestAddressesOfEndpointSlices(t *testing.T) {
	ready := func(is *bool, addresses ...string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: is}}
	}
	port := func(name string, number int32) discoveryv1.EndpointPort {
		return discoveryv1.EndpointPort{Name: &name, Port: &number}
	}
	slice := func(family discoveryv1.AddressType, ports []discoveryv1.EndpointPort, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{AddressType: family, Ports: ports, Endpoints: endpoints}
	}
	both := []discoveryv1.EndpointPort{port("prometheus", 2112), port("grpc", 8033)}
	four, six := discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	for name, tc := range map[string]struct {
		slices []discoveryv1.EndpointSlice
		port   string
		want   []string
	}{
		"no slice":              {nil, "8033", nil},
		"by number":             {[]discoveryv1.EndpointSlice{slice(four, both, ready(new(true), "1.1.1.1"))}, "8033", []string{"1.1.1.1:8033"}},
		"another port":          {[]discoveryv1.EndpointSlice{slice(four, both, ready(new(true), "1.1.1.1"))}, "8008", nil},
		"a port without number": {[]discoveryv1.EndpointSlice{slice(four, []discoveryv1.EndpointPort{{Name: new("grpc")}}, ready(nil, "1.1.1.1"))}, "8033", nil},
		"who says nothing is ready": {
			[]discoveryv1.EndpointSlice{slice(four, both, ready(nil, "1.1.1.1"), ready(new(false), "2.2.2.2"))}, "8033", []string{"1.1.1.1:8033"}},
		"all slices, ordered, each once": {
			[]discoveryv1.EndpointSlice{slice(four, both, ready(nil, "2.2.2.2"), ready(nil, "1.1.1.1")), slice(four, both, ready(nil, "2.2.2.2"))},
			"8033", []string{"1.1.1.1:8033", "2.2.2.2:8033"}},
		"a pod with both families counts once": {
			[]discoveryv1.EndpointSlice{slice(six, both, ready(nil, "fd00::1")), slice(four, both, ready(nil, "1.1.1.1"))}, "8033", []string{"1.1.1.1:8033"}},
		"only IPv6":               {[]discoveryv1.EndpointSlice{slice(six, both, ready(nil, "fd00::1"))}, "8033", []string{"[fd00::1]:8033"}},
		"names are not addresses": {[]discoveryv1.EndpointSlice{slice(discoveryv1.AddressTypeFQDN, both, ready(nil, "host.example"))}, "8033", nil},
		"no address":              {[]discoveryv1.EndpointSlice{slice(four, both, ready(nil))}, "8033", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Addresses(tc.slices, tc.port); !slices.Equal(got, tc.want) {
				t.Errorf("addresses %v, want %v", got, tc.want)
			}
		})
	}
}
