// Package v1alpha1 contains the aihub.opendatahub.io/v1alpha1 API. A Catalog is a server in which users browse models.
// A cluster has one active Catalog, and its name is catalog.
//
// +kubebuilder:object:generate=true
// +groupName=aihub.opendatahub.io
package v1alpha1
