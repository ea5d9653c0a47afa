// Package models registers models with the mesh of their namespace, and brings what the mesh says of them into the status of the
// resources that ask for them: Predictors, InferenceServices in ModelMesh mode, and whatever other sources there are.
//
// One controller serves all sources; its request says which one it is about. It is woken by changes of resources, by what the
// mesh writes into its etcd, and by pods of the mesh that come and go. It asks the mesh only then, or while a model is on its
// way and no event would show it, and remembers each answer: a status that another client changed is repaired without a call.
// What is decided stands in pure functions (status.go, condition.go).
package models
