// Package peers runs operators of other projects next to a test control plane: Kueue and the operator of KubeRay, compiled
// from their modules, with their own manifests, roles and webhooks.
//
// The test control plane has no network of Services. This package therefore replaces the environment of a pod: ports on
// loopback, a token of the ServiceAccount, and the mounted certificate.
//
// On a real node they are pods, see [Pods].
package peers
