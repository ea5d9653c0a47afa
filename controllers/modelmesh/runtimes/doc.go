// Package runtimes serves runtimes of ModelMesh: in every enabled namespace one Deployment for each multi-model runtime, the Service in
// front of all of them, and what their pods read.
//
// One controller reconciles one namespace at a time (reconcile.go): it reads the runtimes, the models, the settings and the Secrets from
// memory (facts.go), has package resources build what there has to be, and hands it to pkg/apply: guards before everything, then what
// pods read, the Service and the manager's own connections (service.go), each runtime (runtime.go). A runtime that cannot be served
// holds up no other; Events report it (events.go). What is no longer wanted, or was left by the original controller, goes (leave.go); pods
// of the original are taken over as they are (takeover.go).
package runtimes
