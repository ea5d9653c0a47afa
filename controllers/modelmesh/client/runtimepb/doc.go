// Package runtimepb contains the gRPC API with which the routing layer of ModelMesh calls the runtimes; see model-runtime.proto. Only tests
// use it.
package runtimepb
