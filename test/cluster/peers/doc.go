// Package peers runs operators of other projects beside a test control plane: Kueue and the operator of KubeRay, compiled
// from their modules, with their own manifests, roles and webhooks.
//
// There is no network of Services on the test control plane. What a peer would have from its pod comes from here: ports on
// loopback, a token of its ServiceAccount, and the certificate that it would find mounted.
//
// On a real node they are pods, see [Pods].
package peers
