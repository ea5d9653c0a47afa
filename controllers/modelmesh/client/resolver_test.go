package client

import (
	"fmt"
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

// [modelmesh-53] A connection receives the addresses of its Service when it is created and after each change, until it is closed.
func TestConnectionReceivesAddressesOfService(t *testing.T) {
	p, _ := newPool(t)
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	must(t, p.Ensure("fraud", target(8033)))
	first := p.clients["fraud"]
	if got := addressList(p, "fraud"); !slices.Equal(got, []string{"1.2.3.4:8033"}) {
		t.Errorf("addresses %v of a new connection, want 1.2.3.4:8033", got)
	}
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "5.6.7.8", "1.2.3.4"))
	p.SetEndpointSlices(types.NamespacedName{Namespace: "sales", Name: fraud.Name}, endpointSliceOf(8033, "9.9.9.9"))
	if got := addressList(p, "fraud"); !slices.Equal(got, []string{"1.2.3.4:8033", "5.6.7.8:8033"}) {
		t.Errorf("addresses %v after a change, want both", got)
	}
	next := target(8033)
	next.RESTPort = 8008
	must(t, p.Ensure("fraud", next))
	if got := addressList(p, "fraud"); !slices.Equal(got, []string{"1.2.3.4:8033", "5.6.7.8:8033"}) {
		t.Errorf("addresses %v of the second connection, want both", got)
	}
	p.SetEndpointSlices(fraud, nil)
	if got := addressList(p, "fraud"); len(got) != 0 {
		t.Errorf("addresses %v of a deleted Service, want none", got)
	}
	if got := *first.addresses.Load(); len(got) != 2 {
		t.Errorf("addresses %v of the closed connection, want the previous ones", got)
	}
	p.Forget("fraud")
	p.SetEndpointSlices(fraud, endpointSliceOf(8033, "1.2.3.4"))
	if got := addressList(p, "fraud"); got != nil {
		t.Errorf("addresses %v after Forget, want none", got)
	}
}

// [modelmesh-53] [M33] ReadyAddresses returns the ready addresses of EndpointSlices with the given port.
func TestReadyAddresses(t *testing.T) {
	endpoint := func(ready *bool, addresses ...string) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	}
	port := func(name string, number int32) discoveryv1.EndpointPort {
		return discoveryv1.EndpointPort{Name: &name, Port: &number}
	}
	slice := func(addressType discoveryv1.AddressType, ports []discoveryv1.EndpointPort, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{AddressType: addressType, Ports: ports, Endpoints: endpoints}
	}
	ports := []discoveryv1.EndpointPort{port("prometheus", 2112), port("grpc", 8033)}
	ipv4, ipv6 := discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	for name, tc := range map[string]struct {
		slices []discoveryv1.EndpointSlice
		port   string
		want   []string
	}{
		"no EndpointSlice":      {nil, "8033", nil},
		"port of the slice":     {[]discoveryv1.EndpointSlice{slice(ipv4, ports, endpoint(new(true), "1.1.1.1"))}, "8033", []string{"1.1.1.1:8033"}},
		"another port":          {[]discoveryv1.EndpointSlice{slice(ipv4, ports, endpoint(new(true), "1.1.1.1"))}, "8008", nil},
		"port without a number": {[]discoveryv1.EndpointSlice{slice(ipv4, []discoveryv1.EndpointPort{{Name: new("grpc")}}, endpoint(nil, "1.1.1.1"))}, "8033", nil},
		"endpoint without a ready condition": {
			[]discoveryv1.EndpointSlice{slice(ipv4, ports, endpoint(nil, "1.1.1.1"), endpoint(new(false), "2.2.2.2"))}, "8033", []string{"1.1.1.1:8033"}},
		"several slices, sorted and unique": {
			[]discoveryv1.EndpointSlice{slice(ipv4, ports, endpoint(nil, "2.2.2.2"), endpoint(nil, "1.1.1.1")), slice(ipv4, ports, endpoint(nil, "2.2.2.2"))},
			"8033", []string{"1.1.1.1:8033", "2.2.2.2:8033"}},
		"IPv4 and IPv6": {
			[]discoveryv1.EndpointSlice{slice(ipv6, ports, endpoint(nil, "fd00::1")), slice(ipv4, ports, endpoint(nil, "1.1.1.1"))}, "8033", []string{"1.1.1.1:8033"}},
		"only IPv6":                {[]discoveryv1.EndpointSlice{slice(ipv6, ports, endpoint(nil, "fd00::1"))}, "8033", []string{"[fd00::1]:8033"}},
		"address type FQDN":        {[]discoveryv1.EndpointSlice{slice(discoveryv1.AddressTypeFQDN, ports, endpoint(nil, "host.example"))}, "8033", nil},
		"endpoint without address": {[]discoveryv1.EndpointSlice{slice(ipv4, ports, endpoint(nil))}, "8033", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ReadyAddresses(tc.slices, tc.port); !slices.Equal(got, tc.want) {
				t.Errorf("addresses %v, want %v", got, tc.want)
			}
		})
	}
}

func TestReadyAddressesAreLimited(t *testing.T) {
	addresses := make([]string, 0, 2*maxAddresses)
	for n := range cap(addresses) {
		addresses = append(addresses, fmt.Sprintf("10.0.%d.%d", n/250, n%250))
	}
	if got := ReadyAddresses(endpointSliceOf(8033, addresses...), "8033"); len(got) != maxAddresses {
		t.Errorf("%d addresses, want %d", len(got), maxAddresses)
	}
}
