// Package v1 contains the mlflow.kubeflow.org/v1 API. An MLflowConfig configures where a workspace (a namespace)
// stores its artifacts and archived traces. The MLflow server reads it; this operator only reports missing Secrets in
// its status.
//
// +kubebuilder:object:generate=true
// +groupName=mlflow.kubeflow.org
package v1
