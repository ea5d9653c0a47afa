// Package reconciler is the one shell around every reconcile of this program: getting the object, pausing, finalizers,
// the order of phases, the summary, at most one status write, events and metrics happen here and only here. A component
// contributes a list of short phases.
package reconciler
