// Package modelmesh is a fake of the routing layer of ModelMesh, the program that real runtime pods run in their container
// `mm`. Everything that the manager can see of it is real: the gRPC service mmesh.ModelMesh, and its state in an etcd, in
// the layout of model-mesh. By itself it serves no inference and loads nothing into memory; on a real node package instance
// runs it in pods, with adapters and model servers.
//
// A [Layer] is the routing layer of one namespace. A [Network] has one for every namespace of a cluster: it reads the pods,
// which does not run, the ConfigMap tc-config and the Secret model-serving-etcd, and is an HTTP proxy through which the shipped
// manager reaches the addresses of those pods, see [Network.Env].
//
// Its answers and writes are compared with recordings of model-mesh v0.12.0, see testdata. Not implemented: the leases
// of instances, their count of models and the election of a leader; further copies of frequently used models; the in-memory state of
// a routing layer that has not noticed that its etcd was wiped; TLS to etcd.
package modelmesh
