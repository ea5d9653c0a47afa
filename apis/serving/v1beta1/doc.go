// Package v1beta1 contains a view of the InferenceService of serving.kserve.io/v1beta1, with the fields of the spec
// and the status that ModelMesh uses. KServe owns the kind. Never update a whole object with this view: fields that it
// does not contain would be lost.
//
// +kubebuilder:object:generate=true
// +groupName=serving.kserve.io
package v1beta1
