// Package raycluster secures Ray clusters in a shared Kubernetes cluster: it creates NetworkPolicies, a sidecar in front of the dashboard
// and a public client port for the pods of KubeRay. webhooks/raycluster injects the sidecar and the certificates into the pods.
//
// The controller never applies a whole RayCluster: its fields belong to KubeRay, which adds more with every release. The status belongs to
// KubeRay too, so users are informed by Events.
//
// How a new RayCluster is secured:
//
//  1. setup.go maps an Event of the cluster, of an object owned by it or of its pods (pods/) to a request.
//  2. clusterReconciler.Reconcile (reconcile.go) reads the cluster; inputs (inputs.go) reads settings, domain, KubeRay namespaces and pods.
//  3. resources.Build (resources/plan.go) builds all objects as a pure function: networkpolicy.go, sidecar.go, routes.go.
//  4. reconcileSecurity (reconcile.go) applies the NetworkPolicies, the ServiceAccount of the sidecar and its ClusterRoleBinding
//     (binding.go), and has certificates/ issue or renew certificates. For a paused cluster this is the last step.
//  5. reconcileExposure publishes the dashboard and the client port, if step 4 succeeded.
//  6. prune deletes objects that are no longer desired, and package takeover those of the CodeFlare operator.
//  7. repair.go updates pod templates and replaces pods; events.go sends an Event for each change.
package raycluster
