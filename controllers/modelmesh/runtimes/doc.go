// Package runtimes serves runtimes of ModelMesh: in every enabled namespace one Deployment for each multi-model runtime, the Service in
// front of all of them, and what their pods read.
//
// One controller reconciles one namespace at a time (reconcile.go): it reads the runtimes, the models, the settings and the Secrets from
// memory (facts.go), has package resources build what there has to be, and hands it to pkg/apply: guards before everything
// (guards.go), what pods read (shared.go), the Service and the manager's own connections (service.go), each runtime (runtime.go). A
// runtime that cannot be served holds up no other; Events report it (events.go). What is no longer wanted goes (leave.go),
// what the original controller made is taken over (takeover.go) or removed (leftovers.go).
package runtimes
