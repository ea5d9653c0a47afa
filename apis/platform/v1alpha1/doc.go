// Package v1alpha1 holds the components.platform.opendatahub.io/v1alpha1 API: the resources with which the operator of the
// platform hands areas over to this one. It creates one object for each area, and reads in the status what became of it.
//
// +kubebuilder:object:generate=true
// +groupName=components.platform.opendatahub.io
package v1alpha1
