// Package v1alpha1 holds the aihub.opendatahub.io/v1alpha1 API: a Catalog is the server that shows what models there are to
// choose from. There is one, named catalog.
//
// +kubebuilder:object:generate=true
// +groupName=aihub.opendatahub.io
package v1alpha1
