// Package v1alpha1 holds PlatformOperatorConfiguration, the file that configures the manager itself.
//
// The file is handed over with --config. It is never stored in a cluster, so there is no CRD. Every setting
// in it also has a flag and many have an environment variable; a flag wins over the environment, which wins over
// the file, which wins over the default. Decoding is strict: a key that is not listed here ends the start.
//
// +kubebuilder:object:generate=true
// +groupName=config.platform.opendatahub.io
package v1alpha1
