// Package modelmesh is a placeholder for the routing layer of ModelMesh, the program that real runtime pods run in their container
// `mm`. It is not that program. What the manager can see of it is real: the gRPC service mmesh.ModelMesh, and its state in an etcd, in
// the layout that the original writes. By itself it serves no inference and loads nothing into memory; on a real node package instance
// runs it in pods, where adapters and model servers do.
//
// A [Layer] is the routing layer of one namespace. A [Network] has one for every namespace of a cluster: it reads the pods,
// which does not run, the ConfigMap tc-config and the Secret model-serving-etcd, and is an HTTP proxy through which the shipped
// manager reaches the addresses of those pods, see [Network.Env].
//
// Its answers and writes are held to those of model-mesh v0.12.0, which were recorded: see testdata. What it leaves out: the leases
// of instances, their count of models and the election of a leader; further copies of what is used much; what a routing layer
// forgets and remembers while it does not notice the changes of an etcd that was wiped; TLS to etcd.
package modelmesh
