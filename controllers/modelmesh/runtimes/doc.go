// Package runtimes reconciles the runtimes of ModelMesh: in each enabled namespace one Deployment per enabled multi-model runtime, the
// Service that selects all of their pods, and the configuration that the pods read.
//
// Requests are namespaces (reconcile.go). A reconcile collects the state of the namespace from the cache (state.go), builds the desired
// objects with package resources and applies them with pkg/apply: guards first, then the shared configuration and the Service
// (service.go), then each runtime (runtime.go). An invalid runtime does not block others; Events report it (events.go). cleanup.go deletes
// managed objects that are not desired.
package runtimes
