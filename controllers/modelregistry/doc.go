// Package modelregistry reconciles ModelRegistry objects: for each it runs one REST server behind kube-rbac-proxy, with an
// existing database or with a PostgreSQL server of its own, and publishes it.
//
// The creation of a registry, file by file:
//
//   - setup.go: the event of the new registry becomes a request (events.go: those of everything else); RBAC and caches stand there
//   - pkg/reconciler reads it, adds the finalizer and runs the phases of reconcile.go in order
//   - check.go: refuse what may not run; defaults.go: wait for AIHub and domain, fill in every default
//   - data.go, claim.go: create credentials and volume of a generated database, once
//   - generated.go, package database: which image may run on that volume, its certificate, its backups and how they are
//   - references.go: hash what pods consume of users, and name what is missing
//   - resources/build.go lists the objects, in their order; each other file there has those of a kind (rbac.go, deployment.go,
//     service.go, networkpolicy.go, httproute.go), or those of the generated database (database.go, backup.go)
//   - writing.go: write guards, then the Deployments, then what leads there (held.go: not before pods serve); group.go: the Group
//   - remove.go: remove what is not wanted any more, and at the end what has no owner reference
//   - pkg/status/serving judges Deployment and endpoints for observe.go, pods.go and logs.go find the cause; status.go turns that into conditions
//   - pkg/reconciler patches the status, once
//
// render.go does the same without a cluster, registrytest has the registries of tests; takeover.go removes what the original operator left; storage moves objects that are
// stored in v1alpha1; beside has the rights in the namespaces of registries.
package modelregistry
