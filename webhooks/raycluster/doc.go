// Package raycluster injects the security of RayClusters into their pod templates at admission, and rejects changes of it: a sidecar that
// authenticates callers of the dashboard, and the certificates of the pods.
//
// A plan is built by pure functions from the settings, the platform, the submitted and the stored object. Both webhooks use it: the mutating
// one applies it, the validating one compares. The patch consists of single operations on the raw object, so that fields unknown to this
// program survive. Injected elements of lists are recognized by name and content.
package raycluster
