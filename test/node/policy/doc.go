// Package policy translates NetworkPolicies to nftables rules.
//
// It supports networking.k8s.io/v1 for IPv4: both selectors, IP blocks with exceptions, named ports and port ranges. Every isolated
// pod has a chain per direction, whose last rule drops. The directions have separate base chains, because a packet must be
// accepted by both.
package policy
