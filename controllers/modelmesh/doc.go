// Package modelmesh holds the code that the controllers of ModelMesh share: enabled namespaces and their requests (namespaces.go),
// runtimes and models (lister.go), their problems (problems.go) and the setup of the component (setup.go).
//
// ServingRuntime to pods: runtimes/setup.go enqueues the namespace, runtimes/reconcile.go collects its state (state.go) and reconciles
// it. Package resources builds the NetworkPolicy, the shared configuration and the Service (service.go), then the Deployment
// (deployment.go, containers.go, volumes.go); pkg/apply applies them in this order. The same reconcile passes the address of the Service
// to package client and the name of the Service, a part of the etcd prefix, to package events (runtimes/service.go).
//
// Predictor to model: models/setup.go watches it, models/reconcile.go registers it with the mesh through package client (register.go), reads
// the model status (status.go) and writes the status of the object (source.go, condition.go). Package events watches etcd (through
// package etcd) and reports changes of models; models/setup.go then enqueues the model.
//
// Package openshift adds service accounts and storage entries, and publishes models: by Routes on OpenShift, elsewhere by HTTPRoutes or
// Ingresses. Package authproxy builds the sidecar that authenticates REST requests. Rules shared with the webhook are in pkg/modelmesh,
// settings in pkg/modelmesh/settings. Package takeover adopts and deletes the objects of the legacy controllers.
package modelmesh
