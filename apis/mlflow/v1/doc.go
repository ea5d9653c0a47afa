// Package v1 holds the mlflow.opendatahub.io/v1 API: one cluster-scoped MLflow
// object describes the MLflow server of a cluster, its stores and its pod.
//
// The schema accepts everything that the operator shipped before this one
// accepted, except for the few inputs that could never work; those are refused
// with the fix in the message.
//
// +kubebuilder:object:generate=true
// +groupName=mlflow.opendatahub.io
package v1
