// Package server contains the fields that the kinds with a server share: the number, scheduling and volumes of server
// pods, and Switch, the type of fields that enable features.
//
// +kubebuilder:object:generate=true
package server
