// Package node runs one real Kubernetes node for a test cluster, without a virtual machine or a container engine. It needs
// Go modules and a few packages of Debian.
//
// # What runs
//
// Package cluster starts the program test/node/cmd/realnode as the first process of namespaces of its own: mounts, processes,
// IPC, names, network and cgroups. In them it runs containerd with runc and the CNI plugins, kubelet, kube-proxy (nftables),
// and CoreDNS as a pod. The control plane joins only the network. All clusters have the same addresses, each in its own
// network, so several can run in parallel. The ports of the control plane are reachable on 127.0.0.1 of the machine, because the
// program listens on them before it leaves the network of the machine; so are further ports that the caller of package cluster
// reserves for programs in that network. kubectl port-forward reaches pods.
//
// Pod Security and NodeRestriction are on. Network policies are enforced, see package policy. Volumes of the default
// StorageClass belong to root with mode 0755, like those of a block device, so that fsGroup takes effect. Images come from
// package images, under any name; the cluster has no route to other networks.
//
// # Effects on the machine
//
// The processes, a folder of the instance, and a cgroup `testcluster-<name>` below that of the caller, whose limits apply to
// the cluster too. Mounts and interfaces are made inside the namespaces and are removed with them. When the first process ends,
// all others end; [Remove] then removes the cgroups. Sysctls that a kubelet would set are presented to it as files with the
// values already set, and /etc, /var/lib and /var/log are overlays.
//
// Both versions of cgroups work. In version 2 a group with processes of its own cannot delegate controllers, so the cluster is placed
// below the nearest ancestor that does.
//
// # Requirements
//
// Linux with br_netfilter and overlay, and root with CAP_SYS_ADMIN; CAP_SYS_RESOURCE is optional. [Require] lists in one line
// the missing parts, and installs those that are packages of Debian.
package node
