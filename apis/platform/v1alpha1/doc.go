// Package v1alpha1 contains the components.platform.opendatahub.io/v1alpha1 API: the resources with which the platform
// operator configures components of this operator. It creates one object for each component and reads its status.
//
// +kubebuilder:object:generate=true
// +groupName=components.platform.opendatahub.io
package v1alpha1
