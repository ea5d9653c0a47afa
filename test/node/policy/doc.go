// Package policy turns NetworkPolicies into rules of nftables.
//
// It supports all of networking.k8s.io/v1 for IPv4: both selectors, blocks of addresses with exceptions, named ports and
// ranges of ports. Every isolated pod has a chain for each direction that ends in a drop. The two directions have
// separate base chains, so that a packet accepted by one is still checked by the other.
package policy
