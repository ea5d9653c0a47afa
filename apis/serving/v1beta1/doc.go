// Package v1beta1 holds a view of the serving.kserve.io/v1beta1 InferenceService: what ModelMesh reads of it, and what it writes
// into its status. The kind belongs to KServe. Never update a whole object by this view: what it does not hold would be lost.
//
// +kubebuilder:object:generate=true
// +groupName=serving.kserve.io
package v1beta1
