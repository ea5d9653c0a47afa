// Package modelmesh is what the controllers of ModelMesh share: which namespaces are served and how events become requests
// for them (namespaces.go), which runtimes and models they have (catalog.go), what is remembered (memory.go), and the start of the
// component (setup.go).
//
// How a ServingRuntime gets its pods: runtimes/setup.go enqueues the namespace, runtimes/reconcile.go gathers the facts (facts.go) and
// reconciles it. Package resources builds the NetworkPolicy, what all pods read and the Service (service.go), then
// the Deployment (deployment.go, containers.go, volumes.go); pkg/apply writes them in this order. The same reconcile
// tells package client where the Service is, and package events which prefix of etcd to watch (runtimes/service.go).
//
// How a Predictor gets its model: models/setup.go watches it, models/reconcile.go registers it with the mesh through package client
// (ask.go), reads the answer (status.go) and writes the status (source.go; condition.go for an InferenceService). Later package events
// tells of each change that the mesh writes into etcd (package etcd reads it), and models/setup.go enqueues the model again.
//
// On OpenShift package openshift adds accounts, storage entries and Routes; package authproxy decides and builds the sidecar that
// guards REST. Rules that the webhook asks too are in pkg/modelmesh, settings in pkg/modelmesh/settings.
package modelmesh
