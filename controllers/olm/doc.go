// Package olm creates objects that an OLM bundle cannot contain, because OLM fails if the cluster does not serve their kind: the ServiceMonitor
// and the PrometheusRule of the manager, and ConsoleYAMLSamples. Other installations have the first two as manifests.
package olm
