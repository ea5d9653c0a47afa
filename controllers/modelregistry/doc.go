// Package modelregistry reconciles ModelRegistry objects. For each it runs one REST server behind kube-rbac-proxy, with an external
// database or a generated PostgreSQL server, and publishes it.
package modelregistry
