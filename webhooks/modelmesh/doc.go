// Package modelmesh validates the runtimes of ModelMesh: ServingRuntime and ClusterServingRuntime. It rejects contradictory annotations of
// autoscaling, with the messages of the legacy operator, and numbers that other programs cannot decode. It warns of other mistakes that keep
// a runtime from running. It admits all runtimes of KServe itself, and updates of objects that were stored with a mistake.
package modelmesh
