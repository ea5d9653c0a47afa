// Package v1beta2 holds the workload.codeflare.dev/v1beta2 API: an AppWrapper
// bundles Kubernetes objects into one workload that Kueue queues, admits,
// suspends and preempts as a unit, and that is watched and retried as a whole.
//
// The schema has no rules of its own. What cannot be said in a schema (paths into
// templates, pod sets, rights of the user) is checked by the webhooks.
//
// +kubebuilder:object:generate=true
// +groupName=workload.codeflare.dev
package v1beta2
