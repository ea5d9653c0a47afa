// Package models registers models with the mesh of their namespace and writes their state into the status of their resources:
// Predictors, and InferenceServices in ModelMesh mode.
//
// One controller serves all sources; the namespace in its requests has the source as a prefix (see modelKey). Events are changes of
// resources, writes of the mesh to its etcd, and changes of the pods of the mesh. The controller calls the mesh after an event, and
// repeatedly while a model is loading, because the success of a load causes no event. It caches the last response of the mesh. If another
// client changes a status, the controller restores it without a call. status.go and condition.go hold the pure functions.
package models
