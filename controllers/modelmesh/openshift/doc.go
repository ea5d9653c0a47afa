// Package openshift reconciles the ServiceAccount, the Secrets for storage and the sidecar, the BackendTLSPolicy of the sidecar, and the
// RBAC bindings of each enabled namespace. It creates a Route, HTTPRoute or Ingress for each InferenceService whose runtime requests one.
//
// Pure functions build the desired objects: see desiredObjects and buildRoute.
package openshift
