// Package openshift reconciles the ServiceAccount, the storage-config and certificate Secrets and the RBAC bindings of each enabled
// namespace. For each InferenceService whose runtime requests it, it creates a Route, HTTPRoute or Ingress. Objects of the legacy
// controller of Open Data Hub are adopted.
//
// The desired objects are pure functions: see desiredObjects and buildRoute.
package openshift
