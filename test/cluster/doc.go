// Package cluster builds and runs a real Kubernetes control plane for tests and for the demo, without containers.
//
// # What runs
//
// An [Instance] is etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok as plain processes on
// loopback. RBAC is on, and owner references are checked as on OpenShift: setting blockOwnerDeletion requires permission to
// update the finalizers of the owner, and changing the owner references of an object requires permission to delete it. The audit
// log contains the request and response of writes, and only metadata of reads and of writes of Secrets, tokens and Leases.
// `default` ServiceAccounts exist. kwok simulates the kubelets of a few fake nodes. Several instances can run in parallel: each has
// its name, its own ports (20000 to 31999, reserved under a lock) and its own folder below the user's cache directory. The processes
// are detached and survive the program that started them; [Instance.Stop] stops every recorded process and removes the folder, but
// keeps the binaries. Processes are identified by pid and start time, from /proc or, on systems without /proc, from ps; a process that
// reuses the pid of an exited process is never signalled.
//
// # Binaries
//
// [Build] compiles the programs from the module test/cluster/binaries, which is separate from the main module, so its
// requirements do not become those of the operator. It needs only the Go toolchain. The result is cached under a key of go.mod,
// go.sum, flags and toolchain, so a second build costs a few stat calls. An instance starts with the first programs before the
// others are built. [Options.Published] prefers downloaded programs; the suites compile all programs, in the required versions.
//
// # Pods, PersistentVolumeClaims and nodes
//
// A pod becomes Running and Ready immediately. The annotation [PodBehaviorAnnotation] on a pod, or an image whose name
// starts with [PodBehaviorRegistry] (`testcluster.invalid/crash-loop:1`), selects another behaviour: `not-ready`,
// `crash-loop`, `image-pull` or `failed` (exit code 1; a pod with restartPolicy Always crash-loops instead); an image may
// select another exit code, `testcluster.invalid/exit-14:1`. Removing the annotation lets the pod recover. Pods of Jobs complete
// immediately, except for those with such a behaviour: `not-ready` ones run until they are deleted.
//
// A claim of the default StorageClass `kwok-volume` is bound immediately and may grow: the capacity in its status follows
// the request. No data is stored.
//
// The duration of the node lease is 40 s. With 0, the nodes would become NotReady after 50 s.
//
// # A real node
//
// With [Options.Real], pods run on one node, see package node, and kwok does not run. All processes of the instance, including those
// of [Instance.StartProcess], are in the network of that node; the ports of the control plane remain reachable.
// [Instance.Images] stores images for the pods, and [Instance.RestartNode] simulates a short power failure.
//
// # Third-party APIs
//
// [InstallPlatform] serves the CRDs of a platform: `bare` none, `plain` Gateway API, Prometheus operator and
// KubeRay, `openshift` all of these with Route, Group, Template, kinds of the console and the cluster configuration. Most CRDs are
// read from the Go modules of their projects, see [Sets]. Route, Group and Template are aggregated APIs on a real OpenShift; here
// they are CRDs, so their defaulting (the generated host of a Route) does not happen.
//
// # Webhooks
//
// Service addresses are not routed on loopback. A webhook configuration reaches a process on the same machine through
// a Service of type ExternalName with the name `localhost` and the port of the process in the webhook's service
// reference; the certificate is still checked against `<service>.<namespace>.svc`.
package cluster
