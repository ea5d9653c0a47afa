// Package runtimepb is the protocol between the routing layer of ModelMesh and the runtimes, see model-runtime.proto. Only tests use it, so the
// manager does not contain it.
package runtimepb
