// Package v1 holds the mlflow.kubeflow.org/v1 API: MLflowConfig, by which a
// workspace (a namespace) chooses where its artifacts go. The MLflow server
// itself reads it; no controller of this manager does.
//
// +kubebuilder:object:generate=true
// +groupName=mlflow.kubeflow.org
package v1
