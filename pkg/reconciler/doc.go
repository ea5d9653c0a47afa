// Package reconciler implements the parts that the reconcilers of the operator share. [New] returns a reconciler that runs the phases of a
// component, and adds get, pause, finalizers, summary conditions, at most one status patch, events and metrics. Other reconcilers use
// [ClassifyErrors] for the same error handling.
package reconciler
