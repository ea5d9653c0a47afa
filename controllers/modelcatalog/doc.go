// Package modelcatalog reconciles the Catalog: the server behind its proxy, a database that the server fills when it starts, the ConfigMaps
// with its sources, and the RBAC of its users.
//
// The steps of a reconcile and their files:
//
//   - bootstrap.go: at the start of the leader, creates the Catalog that the settings request
//   - setup.go: RBAC, watches and the mapping of events to requests; caches of Secrets by name and of labelled ConfigMaps, watchers of the admin
//     groups and the cluster proxy; package huggingface watches the API keys for Hugging Face
//   - pkg/reconciler: reads the object, adds the finalizer and runs the phases of reconcile.go in order; only one Catalog of the cluster is active
//   - userdata.go: creates the user-editable ConfigMaps and the Secret of the database, and adds missing keys; rolls the pods when a password or the
//     pod of the database changes, and reports missing objects
//   - sources.go: selects the labelled ConfigMaps to mount and limits how often new ones replace the pod
//   - package resources: builds the objects, which build.go lists; pkg/servers builds those shared with registries
//   - pkg/apply: applies NetworkPolicies and RBAC, then Deployments, then the exposure; remove.go deletes objects that are no longer desired
//   - pkg/servers evaluates Deployment and EndpointSlices, status.go the pods; pkg/reconciler patches the status once
//
// render.go builds the objects without a cluster, legacy.go adopts objects of the legacy operator, and package namespaced holds the RBAC
// markers for the namespace of the Catalog, except those of package huggingface.
package modelcatalog
