// Package v1alpha1 holds the serving.kserve.io/v1alpha1 API as ModelMesh uses it. The Predictor, one model and where it lies, is
// ours with its CRD. ServingRuntime and ClusterServingRuntime belong to KServe; here are views of them that hold what ModelMesh
// reads.
//
// +kubebuilder:object:generate=true
// +groupName=serving.kserve.io
package v1alpha1
