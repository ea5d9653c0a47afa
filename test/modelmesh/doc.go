// Package modelmesh stands in for the routing layer of ModelMesh, the program that real runtime pods run in their container
// `mm`. It is not that program: it serves no inference and loads nothing into memory. What the manager can see of it is real:
// the gRPC service mmesh.ModelMesh, and its state in an etcd, in the layout that the original writes.
//
// A [Layer] is the routing layer of one namespace. A [Network] has one for every namespace of a cluster: it reads the pods,
// which nobody runs, the ConfigMap tc-config and the Secret model-serving-etcd, and is an HTTP proxy through which the shipped
// manager reaches the addresses of those pods, see [Network.Env].
//
// What it leaves out: registerModel, unregisterModel, getModelStatus, ensureLoaded and the flag sync, which the manager does not
// use; scaling by load; the leases of instances; the read-only mode.
package modelmesh
