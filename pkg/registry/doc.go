// Package registry is shared by the controllers of model registries and the model catalog. Both run the same server program behind
// kube-rbac-proxy with a PostgreSQL database, and one legacy operator managed both.
package registry
