// Package raycluster secures Ray clusters in a shared Kubernetes cluster: it creates NetworkPolicies, certificates and the objects of the
// dashboard's sidecar, and publishes dashboard and client port. webhooks/raycluster injects the sidecar and the certificates into the pods.
//
// The controller never applies a whole RayCluster, because KubeRay adds fields to its type with every release. KubeRay owns the status, so
// the controller reports problems as Events.
//
// How a new RayCluster is secured:
//
//  1. setup.go maps watch events of RayClusters, their child objects and their pods (pods/) to requests.
//  2. clusterReconciler.Reconcile (reconcile.go) reads the cluster; inputs (inputs.go) reads settings, domain, KubeRay namespaces and pods.
//  3. resources.Build (resources/plan.go) builds objects as a pure function: networkpolicy.go, sidecar.go, routes.go.
//  4. reconcileSecurity (reconcile.go) applies the NetworkPolicies, the objects of the sidecar and its ClusterRoleBinding (binding.go),
//     and issues or renews certificates (certificates/). A paused cluster gets only NetworkPolicies and certificates, and no later step.
//  5. reconcileExposure publishes the dashboard and the client port, if step 4 succeeded.
//  6. prune deletes objects that are no longer desired, and package takeover those of the CodeFlare operator.
//  7. repair.go makes the webhook update pod templates, and deletes pods that lack a pull secret; events.go records Events.
package raycluster
