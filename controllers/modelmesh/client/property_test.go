package client

import (
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"
)

// drawSlices draws the EndpointSlices of a Service.
func drawSlices(t *rapid.T) []discoveryv1.EndpointSlice {
	endpoint := rapid.Custom(func(t *rapid.T) discoveryv1.Endpoint {
		e := discoveryv1.Endpoint{Addresses: []string{"10.0.0." + strconv.Itoa(rapid.IntRange(1, 5).Draw(t, "pod"))}}
		switch rapid.SampledFrom([]string{"ready", "not ready", "no condition"}).Draw(t, "state") {
		case "ready":
			e.Conditions.Ready = new(true)
		case "not ready":
			e.Conditions.Ready = new(false)
		}
		return e
	})
	slice := rapid.Custom(func(t *rapid.T) discoveryv1.EndpointSlice {
		s := discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: rapid.SliceOfN(endpoint, 0, 4).Draw(t, "endpoints")}
		for _, number := range rapid.SliceOfDistinct(rapid.SampledFrom([]int32{8033, 8008, 2112}), rapid.ID[int32]).Draw(t, "ports") {
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: new("p" + strconv.Itoa(int(number))), Port: &number})
		}
		return s
	})
	return rapid.SliceOfN(slice, 0, 4).Draw(t, "slices")
}

// For any EndpointSlices in any order, ReadyAddresses returns the addresses of the ready endpoints, sorted and unique.
func TestReadyAddressesOfAnySlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		endpoints := drawSlices(t)
		want := map[string]bool{}
		for _, slice := range endpoints {
			hasPort := slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool { return *p.Port == 8033 })
			for _, e := range slice.Endpoints {
				if hasPort && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
					want[net.JoinHostPort(e.Addresses[0], "8033")] = true
				}
			}
		}
		got := ReadyAddresses(endpoints, "8033")
		if len(got) != len(want) || !slices.IsSorted(got) || slices.ContainsFunc(got, func(a string) bool { return !want[a] }) {
			t.Fatalf("addresses %v, want %v", got, want)
		}
		slices.Reverse(endpoints)
		if repeated := ReadyAddresses(append(endpoints, endpoints...), "8033"); !slices.Equal(repeated, got) {
			t.Fatalf("addresses %v of the slices reversed and repeated, want %v", repeated, got)
		}
	})
}

// After concurrent changes of EndpointSlices and targets, the connection has the addresses of the last EndpointSlices.
func TestConcurrentSetEndpointSlicesAndEnsure(t *testing.T) {
	const rounds, writers = 50, 8
	p, _ := newPool(t)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range rounds {
				p.SetEndpointSlices(fraud, endpointSliceOf(8033, "10.0."+strconv.Itoa(i)+"."+strconv.Itoa(n)))
			}
		})
	}
	wg.Go(func() {
		for n := range rounds {
			next := target(8033)
			next.RESTPort = int32(n)
			if err := p.Ensure("fraud", next); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if got, want := addressList(p, "fraud"), ReadyAddresses(p.endpointSlices[fraud], "8033"); len(want) != 1 || !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
}
