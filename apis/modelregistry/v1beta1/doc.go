// Package v1beta1 holds the modelregistry.opendatahub.io/v1beta1 API: a ModelRegistry is one server that keeps metadata of
// models in a database. It is the stored version; v1alpha1 is served for older clients and converted without loss.
//
// +kubebuilder:object:generate=true
// +groupName=modelregistry.opendatahub.io
package v1beta1
