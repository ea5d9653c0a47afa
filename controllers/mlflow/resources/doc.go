// Package resources builds the objects of an MLflow as pure functions of a validated MLflow and Inputs. build.go defines the order of the
// objects.
package resources
