// Package v1 contains the mlflow.opendatahub.io/v1 API. A cluster-scoped MLflow object describes the MLflow server of
// a cluster, its stores and its pods.
//
// The schema accepts all objects that the legacy operator accepts, except for a few that cannot work. Those are
// rejected with a message that describes the fix.
//
// +kubebuilder:object:generate=true
// +groupName=mlflow.opendatahub.io
package v1
