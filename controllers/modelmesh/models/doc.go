// Package models registers models with the mesh of their namespace and writes their state into the status of their resources:
// Predictors, and InferenceServices in ModelMesh mode.
//
// One controller serves both kinds of resources (sources); the namespace in its requests has the source as a prefix (see modelKey). The
// controller calls the mesh after a change of a spec, of the mesh's data in etcd or of its pods, and repeatedly while a model is loading,
// because the mesh does not write the success of a load to etcd. It caches the last response of the mesh. If another client changes a
// status, the controller restores it without a call. status.go and condition.go compute the status and send no requests.
package models
