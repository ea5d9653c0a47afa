// Package resources builds the objects of a RayCluster as pure functions of the cluster and its Inputs: NetworkPolicies (networkpolicy.go),
// the objects of the sidecar (sidecar.go), and Routes, Ingresses and HTTPRoutes (routes.go). Build returns them as one Plan (plan.go).
package resources
