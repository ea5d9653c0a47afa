// Package v1beta1 contains the modelregistry.opendatahub.io/v1beta1 API. A ModelRegistry is a server that stores
// metadata of models in a database. This version is stored; v1alpha1 is served for older clients.
//
// +kubebuilder:object:generate=true
// +groupName=modelregistry.opendatahub.io
package v1beta1
