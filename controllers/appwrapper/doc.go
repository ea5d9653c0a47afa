// Package appwrapper runs AppWrappers: it creates the objects of a workload when Kueue admits it, watches over them and
// their pods, retries what fails, and clears everything away when the workload is suspended, fails or is deleted.
//
// How an AppWrapper comes to run, one reconcile after the other:
//
//  1. The shell of pkg/reconciler reads the AppWrapper and calls workloads.step (workloads.go).
//  2. workloads.gather (observe.go) collects rules.Facts: the stored status, pods and components from the cache.
//  3. rules.Decide asks the rules of the phase in order; the first that applies decides. A new AppWrapper becomes
//     Suspended (rules/starting.go), with the pod sets of each component in its status.
//  4. Kueue sets spec.suspend to false. The rule "start" reserves the quota and announces every component: identify
//     (create.go) puts the name of what will be created into the status. carryOut (status.go) writes the decision, and the
//     shell stores it.
//  5. In Resuming the rule "create" is a question. workloads.create (create.go) makes each object: instantiate (inject.go) adds
//     labels and what Kueue says, kinds.watch (kinds.go) starts a watch of the kind, and apply.CreateAsIs sends it. Then the
//     rules are evaluated again with the outcome: Running, another try, or Failed.
//  6. In Running (rules/running.go) events of pods and components (watches.go) start the next reconcile. Each kind that
//     reports its end is judged by observe_components.go, the pods of all others by observe_pods.go. A node that says that its
//     resources are to be left wakes the AppWrappers on it (nodes/).
//  7. What is left is removed by rules/ending.go and remove.go, and status.go informs the user of a step once its status is stored.
package appwrapper
