// Package v1alpha1 contains the modelregistry.opendatahub.io/v1alpha1 API, which is deprecated and served for older
// clients.
//
// It shares with v1beta1 the types that are the same in both versions. Values that only v1beta1 supports are kept in
// an annotation while an object has this version, see package webhooks/modelregistry/conversion.
//
// +kubebuilder:object:generate=true
// +groupName=modelregistry.opendatahub.io
package v1alpha1
