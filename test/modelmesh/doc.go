// Package modelmesh is a fake of the routing layer of ModelMesh, the program in the container `mm` of runtime pods. It implements
// the interfaces that the manager uses: the gRPC service mmesh.ModelMesh, and the state in an etcd, in the layout of
// model-mesh. This package serves no inference and loads no models into memory; on a real node package instance runs it in
// pods, with adapters and model servers.
//
// A [Layer] is the routing layer of one namespace. A [Network] has one for every namespace with runtime pods: it reads the pods,
// which no kubelet runs, the ConfigMap tc-config and the Secret model-serving-etcd, and is an HTTP proxy through which the
// unmodified manager connects to the addresses of those pods, see [Network.Env].
//
// A test compares the responses and writes of a Layer with recordings of model-mesh v0.12.0, see testdata. Not implemented: the
// leases of instances, their count of models and the election of a leader; further copies of frequently used models; the missed
// changes and transitions of a routing layer whose etcd was wiped; TLS to etcd.
package modelmesh
