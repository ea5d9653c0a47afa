// Package policy turns NetworkPolicies into rules of nftables.
//
// Supported is all of networking.k8s.io/v1 for IPv4: both selectors, blocks of addresses with exceptions, named ports and
// ranges of ports. Every isolated pod has a chain for each direction that ends in a drop. The two directions hang on base
// chains of their own, so that what one accepts the other still sees.
package policy
