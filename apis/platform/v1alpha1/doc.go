// Package v1alpha1 contains the components.platform.opendatahub.io/v1alpha1 API: the resources with which the platform
// operator configures components of this operator. The platform operator creates these objects and reads their status.
//
// +kubebuilder:object:generate=true
// +groupName=components.platform.opendatahub.io
package v1alpha1
