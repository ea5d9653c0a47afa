// Package node runs a real Kubernetes node for a test cluster, without a virtual machine or a container engine. It requires Go
// modules and a few Debian packages.
//
// # Processes
//
// Package cluster starts the program test/node/cmd/realnode as the first process of new mount, PID, IPC and UTS namespaces. The program
// creates network and cgroup namespaces. It runs containerd with runc and the CNI plugins, kubelet, kube-proxy (nftables), and CoreDNS as a
// pod.
// The control plane shares only the network namespace. All clusters have the same addresses, each in its own network, so
// several can run in parallel. The program forwards the ports of the control plane from 127.0.0.1 of the machine, and the ports
// that the caller of package cluster reserves for programs in the network namespace. Clients connect to pods with kubectl
// port-forward.
//
// Pod Security and NodeRestriction are enabled. NetworkPolicies are enforced, see package policy. Volumes of the default StorageClass
// are owned by root with mode 0755, like those of a block device, so fsGroup has an effect. Package images provides all
// images; the cluster has no route to other networks.
//
// # Effects on the machine
//
// A node consists of processes, the directory of the instance, and a cgroup `testcluster-<name>` below that of the caller, whose
// limits apply to the cluster. Mounts and interfaces exist only in the namespaces. When the first process exits, the kernel ends
// all others; [Remove] then removes the cgroups. The sysctls that a kubelet sets are bind-mounted files with the desired values, so
// the kubelet does not change the machine; /etc, /var/lib and /var/log are overlays.
//
// Both versions of cgroups are supported. In version 2 a group with processes cannot delegate controllers, so the group of the cluster
// is created below the nearest ancestor that does.
//
// # Requirements
//
// Linux with br_netfilter and overlay, and root with CAP_SYS_ADMIN; CAP_SYS_RESOURCE is optional. [Require] installs missing Debian
// packages. If another requirement is missing, it returns an error.
package node
