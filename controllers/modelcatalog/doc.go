// Package modelcatalog reconciles the Catalog: the server behind its proxy, a database that the server fills when it starts, the ConfigMaps
// with its sources, and the RBAC of its users.
//
// The start-up and its files:
//
//   - bootstrap.go: creates or deletes the Catalog when this manager becomes the leader
//   - setup.go: RBAC, watches and the mapping of events to requests; caches of Secrets by name and of labelled ConfigMaps, watchers of the admin
//     groups and the cluster proxy; package huggingface watches the API keys for Hugging Face
//
// The phases of a reconcile and their files, in order:
//
//   - pkg/reconciler: reads the object, adds the finalizer and runs the phases of reconcile.go; only one Catalog of the cluster is active
//   - userdata.go: creates the user-editable ConfigMaps and the Secret of the database, and adds missing keys to the Secret
//   - reconcile.go: issues the certificates
//   - sources.go: selects the labelled ConfigMaps to mount and limits how often new ones replace the pod
//   - package resources: builds the objects, which build.go lists; pkg/servers builds those shared with registries
//   - remove.go: deletes Deployments that cannot be updated
//   - userdata.go: restarts the pods when a Secret of the database changes, and the server when the database pod is replaced; reports missing
//     objects
//   - pkg/apply: applies NetworkPolicies and RBAC, then Deployments, then the exposure, and prunes objects that are no longer desired;
//     remove.go deletes those without an owner reference
//   - pkg/servers: evaluates Deployment and EndpointSlices, status.go the pods; pkg/reconciler patches the status once
//
// render.go builds the objects without a cluster, and package namespaced holds the RBAC markers for the namespace of the Catalog, except
// those of package huggingface.
package modelcatalog
