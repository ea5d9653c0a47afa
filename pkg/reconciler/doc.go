// Package reconciler implements the parts that all reconcilers of the operator share: get, pause, finalizers, the order of phases, summary
// conditions, at most one status patch, events and metrics. A component contributes a list of phases.
package reconciler
