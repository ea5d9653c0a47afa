// Package resources builds the objects around a RayCluster as pure functions of the cluster and its Inputs: NetworkPolicies
// (networkpolicy.go), what the sidecar before the dashboard needs (guard.go), and what leads to the cluster from outside
// (publication.go). Build puts them into one Plan (plan.go).
package resources
