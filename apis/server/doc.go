// Package server has the fields that the kinds with a server share: where its pods run, and what is mounted into them.
//
// +kubebuilder:object:generate=true
package server
