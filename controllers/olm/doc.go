// Package olm creates what an OLM bundle cannot contain, because OLM fails where the cluster does not serve the kind: the ServiceMonitor and
// the PrometheusRule of the manager, and examples for the OpenShift console. Other installations have the first two as manifests.
package olm
