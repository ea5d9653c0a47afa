// Package modelcatalog runs the model catalog of a Catalog: the server behind its proxy, a database whose content can be
// filled again at any time, the ConfigMaps that it reads its sources from, and the rights of its users.
//
// The creation of a Catalog, file by file:
//
//   - bootstrap.go: at the start of the leader, create the Catalog that settings ask for
//   - setup.go: its event becomes a request; RBAC and watches stand there
//   - pkg/reconciler reads it, adds the finalizer and runs the phases of reconcile.go in order; only one Catalog of the cluster is in charge
//   - keep.go: create the ConfigMaps of users and the Secret of the database, and add what is missing in them
//   - follow.go: what is not ours and held in memory: Secrets by name, the groups of administrators, the way out of the cluster; package
//     huggingface: the keys of the server there
//   - sources.go: judge the labelled ConfigMaps, not too many at once
//   - resources/build.go lists the objects; each other file there has those of a kind, database.go those of the database; pkg/registry what
//     registries have too
//   - references.go: roll the pods when a password or the pod of the database has changed; name what is missing
//   - pkg/apply writes guards, then Deployments, then what leads there; remove.go: remove what is not wanted any more
//   - pkg/registry judges Deployment and endpoints, status.go the pods; pkg/reconciler patches the status, once
//
// render.go does the same without a cluster; takeover.go takes over what the original operator made; beside has the rights in the
// namespace of the Catalog but for those of package huggingface.
package modelcatalog
