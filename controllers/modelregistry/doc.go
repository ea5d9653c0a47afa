// Package modelregistry reconciles ModelRegistry objects. For each, it runs and publishes a REST server, behind kube-rbac-proxy if the spec
// has the proxy. The server uses an external database or a generated PostgreSQL database.
package modelregistry
