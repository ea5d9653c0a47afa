// Package openshift reconciles the ServiceAccount, the Secrets for storage and the sidecar, and the RBAC bindings of each enabled
// namespace. It creates a Route, HTTPRoute or Ingress for each InferenceService whose runtime requests one, and adopts objects of the legacy
// controller of Open Data Hub.
//
// Pure functions build the desired objects: see desiredObjects and buildRoute.
package openshift
