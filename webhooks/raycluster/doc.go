// Package raycluster admits RayClusters. It injects into their pod templates a sidecar that authenticates callers of the dashboard, and the
// certificates of the pods, and it rejects changes of these elements.
//
// Pure functions build a plan from the settings, the platform, the submitted and the stored object. The mutating webhook applies the plan,
// and the validating webhook compares the object with it. The patch changes single fields of the raw object: it retains fields that this
// operator does not know.
package raycluster
