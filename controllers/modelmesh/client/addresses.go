package client

import (
	"net"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// Addresses returns where the ready endpoints of a Service listen on the port of a number: each once, ordered.
// Of pods with addresses of both families the IPv4 ones count, since each pod is to be called once.
func Addresses(endpoints []discoveryv1.EndpointSlice, port string) []string {
	var v4, v6 []string
	for i := range endpoints {
		slice := &endpoints[i]
		if !slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool { return p.Port != nil && strconv.Itoa(int(*p.Port)) == port }) {
			continue
		}
		switch slice.AddressType {
		case discoveryv1.AddressTypeIPv4:
			v4 = append(v4, ready(slice.Endpoints, port)...)
		case discoveryv1.AddressTypeIPv6:
			v6 = append(v6, ready(slice.Endpoints, port)...)
		}
	}
	out := v4
	if len(v4) == 0 {
		out = v6
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ready returns the addresses of endpoints that take requests. By the API's rule one that says nothing is ready, and the first
// address stands for the endpoint.
func ready(endpoints []discoveryv1.Endpoint, port string) []string {
	var out []string
	for _, endpoint := range endpoints {
		if len(endpoint.Addresses) > 0 && (endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready) {
			out = append(out, net.JoinHostPort(endpoint.Addresses[0], port))
		}
	}
	return out
}
