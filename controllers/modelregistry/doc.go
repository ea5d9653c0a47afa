// Package modelregistry reconciles ModelRegistry objects: for each it runs one REST server behind kube-rbac-proxy, with an
// existing database or with a PostgreSQL server of its own, and publishes it.
//
// The creation of a registry, file by file:
//
//   - setup.go: the event of the new registry becomes a request; RBAC, caches and watches stand there
//   - pkg/reconciler reads it, adds the finalizer and runs the phases of reconcile.go in order
//   - spec.go: wait for AIHub and domain, refuse what may not run, fill in every default
//   - data.go, claim.go: create credentials and volumes of a generated database, once; package database: which image may run on the volume,
//     and how the backups are
//   - references.go: hash what pods consume of users, and name what is missing
//   - resources/build.go lists the objects, in their order; each other file there has those of a kind (guards.go, deployment.go, service.go),
//     or those of the generated database (database.go); pkg/registry what the catalog has too
//   - writing.go: write guards, then the Deployments, then what leads there, though not before pods serve
//   - remove.go: remove what is not wanted any more, and at the end what has no owner reference
//   - status.go: judge Deployment and endpoints and turn that into conditions; diagnose.go finds the cause in pods and logs
//   - pkg/reconciler patches the status, once
//
// render.go does the same without a cluster; takeover.go removes what the original operator left; storage moves objects that are stored in
// v1alpha1; beside has the rights in the namespaces of registries.
package modelregistry
