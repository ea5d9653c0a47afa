// Package appwrapper runs AppWrappers: it creates the objects of a workload when Kueue admits it, watches them and their pods, retries
// after failures, and deletes them after the workload has ended, or when it is suspended or deleted.
//
// How an AppWrapper starts, one reconcile after the other:
//
//  1. The base reconciler of pkg/reconciler reads the AppWrapper and calls workloadReconciler.step (reconcile.go).
//  2. collectFacts (observe.go) collects rules.Facts: the stored status, pods and components from the cache.
//  3. rules.Decide returns the decision of the first rule of the phase that applies. A new AppWrapper becomes Suspended
//     (rules/resuming.go), with the pod sets of each component in its status.
//  4. Kueue sets spec.suspend to false. The rule "start" sets QuotaReserved and announces every component. applyDecision (status.go) writes
//     the decision into the status, including the names of the future objects, which identify (create.go) returns.
//  5. In Resuming the rule "create" requests an action. createComponents (create.go) builds each object with the labels and pod set infos
//     of Kueue (buildObject in inject.go), starts a watch of its kind (kindreader.go) and calls Applier.CreateAsIs. Then the rules are
//     evaluated again with the outcome: a wait for the first pods, Running, a retry, or Failed.
//  6. In Running (rules/running.go) events of pods and components (watches.go) start the next reconcile. observe_components.go reads the
//     status of the kinds in statusReaders, observe_pods.go the pods of all kinds. A NoExecute label of a node enqueues the
//     AppWrappers with pods on the node (nodes/).
//  7. rules/deletion.go and delete.go delete objects, and status.go sends an Event for each transition once the status is stored.
package appwrapper
