// Package raycluster makes Ray clusters safe to use in a shared Kubernetes cluster: NetworkPolicies, a guarded dashboard and
// a published client port around what KubeRay runs. What is put into the pods is the work of webhooks/raycluster.
//
// A RayCluster is read as it is and never written as a whole: its fields belong to KubeRay, which adds more with every
// release. Its status is never written either, so users are informed by Events.
//
// How a new RayCluster is secured:
//
//  1. An event of the cluster, of what was made for it or of its pods (pods/) is mapped to a request (setup.go).
//  2. clusters.Reconcile (reconcile.go) reads the cluster; inputs (inputs.go) gathers what else counts: settings, the domain, the
//     namespaces of KubeRay, and what the running pods have.
//  3. resources.Build (resources/plan.go) plans all objects as a pure function: networkpolicy.go, guard.go, publication.go.
//  4. guard (reconcile.go) applies the NetworkPolicies, the account of the sidecar and its ClusterRoleBinding (binding.go), and has
//     certificates/ issue or renew certificates. A paused cluster ends here.
//  5. Only when all of that is there the dashboard and the client port are published.
//  6. prune removes what is not wanted any more, and takeover.go what the CodeFlare operator left.
//  7. repair.go mends pod templates and pods; events.go informs the user, once for each change.
package raycluster
