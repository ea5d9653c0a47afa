// Package v1beta2 contains the workload.codeflare.dev/v1beta2 API. An AppWrapper groups Kubernetes objects into one
// workload, which Kueue queues, admits, suspends and preempts, and which the operator monitors and retries.
//
// The schema has no validation rules. Webhooks check what a schema cannot express: paths into templates, pod sets, and
// the permissions of the user.
//
// +kubebuilder:object:generate=true
// +groupName=workload.codeflare.dev
package v1beta2
