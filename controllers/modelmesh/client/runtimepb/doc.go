// Package runtimepb is the protocol between the routing layer of ModelMesh and the runtimes, see model-runtime.proto. Only tests
// speak it; it is a package of its own so that the manager does not carry it.
package runtimepb
