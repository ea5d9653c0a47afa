// Package modelmesh validates the runtimes of ModelMesh: ServingRuntime and ClusterServingRuntime. It rejects invalid autoscaling, with the
// messages of the legacy operator, and values that other clients cannot decode. It warns about other errors that prevent a runtime from
// running. It allows errors that the stored runtime has, and single-model runtimes that other clients can decode.
package modelmesh
