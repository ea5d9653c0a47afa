// Package v1alpha1 holds the modelregistry.opendatahub.io/v1alpha1 API, which is deprecated and served for older clients.
//
// It shares with v1beta1 the types that are the same in both. What v1beta1 can say and this version cannot is kept in an
// annotation while an object is seen in this version, see package webhooks/modelregistry.
//
// +kubebuilder:object:generate=true
// +groupName=modelregistry.opendatahub.io
package v1alpha1
