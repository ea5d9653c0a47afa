package client

import (
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// addressList returns the addresses that the connection of a namespace uses.
func addressList(p *Pool, namespace string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[namespace]; c != nil {
		return *c.addresses.Load()
	}
	return nil
}

// [modelmesh-53] A connection has the addresses of its Service at creation and after each change. A closed connection gets none.
func TestConnectionReceivesAddressesOfService(t *testing.T) {
	p, _ := newPool(t)
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	must(t, p.Ensure("fraud", target(8033)))
	first := p.clients["fraud"]
	if got := addressList(p, "fraud"); !slices.Equal(got, []string{"1.2.3.4:8033"}) {
		t.Errorf("addresses %v of a new connection", got)
	}
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "5.6.7.8", "1.2.3.4"))
	p.SetEndpointSlices(types.NamespacedName{Namespace: "elsewhere", Name: fraud.Name}, endpointSliceOf(8033, "9.9.9.9"))
	if got := addressList(p, "fraud"); !slices.Equal(got, []string{"1.2.3.4:8033", "5.6.7.8:8033"}) {
		t.Errorf("addresses %v after a change", got)
	}
	replaced := target(8033)
	replaced.RESTPort = 8008
	must(t, p.Ensure("fraud", replaced))
	if got := addressList(p, "fraud"); !slices.Equal(got, []string{"1.2.3.4:8033", "5.6.7.8:8033"}) {
		t.Errorf("addresses %v of the connection that replaced the first", got)
	}
	p.SetEndpointSlices(fraud, nil)
	if got := addressList(p, "fraud"); len(got) != 0 {
		t.Errorf("addresses %v of a deleted Service, want none", got)
	}
	if got := *first.addresses.Load(); len(got) != 2 {
		t.Errorf("addresses %v reached a closed connection", got)
	}
	p.Forget("fraud")
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	if got := addressList(p, "fraud"); got != nil {
		t.Errorf("addresses %v without a client", got)
	}
}

// [modelmesh-53] M33
func TestReadyAddresses(t *testing.T) {
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
		"endpoint without a ready condition": {
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
			if got := ReadyAddresses(tc.slices, tc.port); !slices.Equal(got, tc.want) {
				t.Errorf("addresses %v, want %v", got, tc.want)
			}
		})
	}
}
