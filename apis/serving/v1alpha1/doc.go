// Package v1alpha1 contains the serving.kserve.io/v1alpha1 API as ModelMesh uses it. This operator owns the Predictor
// and its CRD. KServe owns ServingRuntime and ClusterServingRuntime; this package contains views of them with the
// fields that ModelMesh uses.
//
// +kubebuilder:object:generate=true
// +groupName=serving.kserve.io
package v1alpha1
