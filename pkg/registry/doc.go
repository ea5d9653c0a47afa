// Package registry holds what the controllers of model registries and of the model catalog have in common: both run a server of one
// program behind kube-rbac-proxy, beside a database of the same kind, and one operator made the objects of both before.
package registry
