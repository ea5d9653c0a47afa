// Package raycluster makes Ray clusters safe to use in a shared Kubernetes cluster: NetworkPolicies, a guarded dashboard and
// a published client port around what KubeRay runs. What is put into the pods is the work of webhooks/raycluster.
//
// A RayCluster is read as it is and never written as a whole: its fields belong to KubeRay, which adds more with every
// release. Its status is never written either, so users are told by Events.
package raycluster
