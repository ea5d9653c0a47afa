// Package resources builds the objects of an MLflow, one file per kind, as pure functions of a validated MLflow and the inputs of the
// cluster. build.go defines their order.
package resources
