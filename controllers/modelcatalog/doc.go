// Package modelcatalog runs the model catalog of a Catalog: the server behind its proxy, a database whose content can be
// filled again at any time, the ConfigMaps that it reads its sources from, and the rights of its users.
//
// The creation of a Catalog, file by file:
//
//   - bootstrap.go: at the start of the leader, create the Catalog that settings ask for
//   - setup.go: its event becomes a request; RBAC and watches stand there, cache.go has the narrow caches for what is not ours
//   - pkg/reconciler reads it, adds the finalizer and runs the phases of reconcile.go in order
//   - choice.go: only one Catalog of the cluster is in charge
//   - keep.go: create the ConfigMaps of users and the Secret of the database, and add what is missing in them
//   - clusterproxy.go, package huggingface: the way of the server out of the cluster, and its keys there
//   - sources.go: judge the labelled ConfigMaps (memory.go: not too many at once); admins.go: the groups of administrators
//   - resources/build.go lists the objects; each other file there has those of a kind, database.go those of the database
//   - references.go, restart.go: roll the pods when a password or the pod of the database has changed; name what is missing
//   - pkg/apply writes guards, then Deployments, then what leads there; remove.go: remove what is not wanted any more
//   - pkg/status/serving judges Deployment and endpoints, status.go the pods; pkg/reconciler patches the status, once
//
// render.go does the same without a cluster; takeover.go takes over what the original operator made; beside has the rights in the
// namespace of the Catalog but for those of package huggingface.
package modelcatalog
