// Package server contains the fields that the kinds with a server share: the number of its pods, their scheduling and
// their volumes. Switch is the type of their fields that enable features.
//
// +kubebuilder:object:generate=true
package server
