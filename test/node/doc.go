// Package node runs one real Kubernetes node for a test cluster: pods run, with nothing but Go modules and a few packages of
// Debian, without a virtual machine and without a container engine.
//
// # What runs
//
// Package cluster starts the program test/node/cmd/realnode as the first process of namespaces of its own: mounts, processes,
// IPC, names, network and cgroups. In them it runs containerd with runc and the CNI plugins, kubelet, kube-proxy (nftables),
// and CoreDNS as a pod. The control plane joins the network alone. All clusters have the same addresses, each in its own
// network, so several run side by side. The ports of the control plane are reached on 127.0.0.1 of the machine, because the
// program has listened there before it left the network of the machine; so are further ports that the caller of package cluster
// reserves, for programs that it starts in that network. kubectl port-forward leads to pods.
//
// Pod Security and NodeRestriction are on. Network policies are enforced, see package policy. Volumes of the default
// StorageClass belong to root with mode 0755, as those of a block device do, so that fsGroup counts. Images come from
// package images, under any name; there is no way out of the cluster.
//
// # What the machine sees
//
// The processes, a folder of the instance, and a cgroup `testcluster-<name>` below that of the caller, whose limits hold for
// the cluster too. Mounts and interfaces are made inside the namespaces and end with them. The first process ends everything in
// them with itself; [Remove] removes the cgroups then. Sysctls that a kubelet would set are shown to it as files that have the
// values already, and /etc, /var/lib and /var/log are overlays.
//
// Both versions of cgroups work. In version 2 a group with processes of its own hands no controllers down, so the cluster goes
// below the nearest group above that does.
//
// # What it needs
//
// Linux with br_netfilter and overlay, and root with CAP_SYS_ADMIN; CAP_SYS_RESOURCE may be missing. [Require] says in one line
// what is not there, and installs what Debian has.
package node
