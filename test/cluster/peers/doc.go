// Package peers runs operators of other projects next to a test control plane: Kueue, the operator of KubeRay and the controller of
// KServe, compiled from their modules, with their own manifests and roles.
//
// The test control plane has no network of Services. This package therefore replaces the environment of a pod: ports on
// loopback, a token of the ServiceAccount, and the mounted certificate.
//
// On a real node, the operators run in pods, see [PackPeerImage].
package peers
