// Package policy translates NetworkPolicies to nftables rules.
//
// It supports networking.k8s.io/v1 for IPv4: both selectors, IP blocks with exceptions, named ports and port ranges. A pod has a chain
// for each direction in which it is isolated; the last rule of the chain drops. The directions have separate base chains, because a
// packet must be accepted by both.
package policy
