// Package server contains the fields that the kinds with a server share: how many pods the server has, where they run,
// and which volumes are mounted into them. Switch is the type of their fields that enable features.
//
// +kubebuilder:object:generate=true
package server
