// Package models registers models with the mesh of their namespace and writes their state into the status of their resources:
// Predictors, and InferenceServices in ModelMesh mode.
//
// One controller serves all sources; the namespace of its requests contains the source. Events are changes of resources, writes of the
// mesh to its etcd, and changes of the pods of the mesh. The controller calls the mesh after an event, or while a load is in progress
// that ends without an event. It caches the last response of the mesh, with which it repairs a status that another client changed without a
// call. status.go and condition.go hold the pure functions.
package models
