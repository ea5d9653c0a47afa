// Package modelregistry reconciles ModelRegistry objects: for each it runs one REST server behind kube-rbac-proxy, with an
// existing database or with a PostgreSQL server of its own, and publishes it.
//
// Builders (build*.go) are pure functions of a spec in which every default stands. The phases fill those defaults in, keep
// the data of a generated database, write everything through pkg/apply, and tell from Deployment, pods, endpoints and Route
// whether the server answers.
package modelregistry
