// Package resources builds the objects of an MLflow server, one file for each kind, as pure functions of a validated MLflow
// and of the inputs of the cluster. build.go puts them in order.
package resources
