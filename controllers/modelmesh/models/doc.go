// Package models registers models with the mesh of their namespace and writes their state into the status of their resources:
// Predictors, and InferenceServices in ModelMesh mode.
//
// One controller serves all sources; the name in its requests has the source as a prefix (see modelKey). Events come from resources,
// the etcd and the pods of the mesh, and the runtimes controller. The controller calls the mesh if spec, etcd or pods changed, and
// repeatedly while a model is loading, because a successful load causes no event. It caches the last response of the mesh. If another
// client changes a status, the controller restores it without a call. status.go and condition.go hold the pure functions.
package models
