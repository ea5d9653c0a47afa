package cluster

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/odh-platform/odh-platform-operator/test/node"
)

//go:embed audit-policy.yaml
var auditPolicy []byte

// Names of the processes of instances, for [Instance.Process] and [Instance.Halt].
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	// RealNode replaces [Kwok] in an instance with a real node.
	RealNode = "node"
)

const (
	leaseSeconds = 40
	clientQPS    = 200
	clientBurst  = 400
)

// Indexes of the ports of an instance in state.Ports.
const (
	etcdPort = iota
	etcdPeerPort
	apiPort
	controllerPort
	schedulerPort
	portCount
)

func (i *Instance) file(name string) string       { return filepath.Join(i.dir, name) }
func (i *Instance) credential(name string) string { return filepath.Join(i.dir, "certificates", name) }

func (i *Instance) etcd() *Process {
	client, peer := "http://"+loopback(i.state.Ports[etcdPort]), "http://"+loopback(i.state.Ports[etcdPeerPort])
	return &Process{Name: Etcd, Port: i.state.Ports[etcdPort], Args: []string{
		"--name=" + i.Name, "--data-dir=" + i.file("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + i.Name + "=" + peer, "--log-level=warn", "--quota-backend-bytes=4294967296",
	}}
}

func (i *Instance) apiServer() *Process {
	args := []string{
		"--etcd-servers=http://" + loopback(i.state.Ports[etcdPort]),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		fmt.Sprintf("--secure-port=%d", i.state.Ports[apiPort]),
		"--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/16",
		// As on OpenShift: changing the owner references of an object requires permission to delete it, and setting blockOwnerDeletion
		// requires permission to update the finalizers of the owner.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--client-ca-file=" + i.credential("ca.crt"),
		"--tls-cert-file=" + i.credential("apiserver.crt"), "--tls-private-key-file=" + i.credential("apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + i.credential("sa.pub"), "--service-account-signing-key-file=" + i.credential("sa.key"),
		"--requestheader-client-ca-file=" + i.credential("front-proxy-ca.crt"), "--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + i.credential("front-proxy.crt"), "--proxy-client-key-file=" + i.credential("front-proxy.key"),
		"--audit-policy-file=" + i.file("audit-policy.yaml"), "--audit-log-path=" + i.AuditLog(),
		"--audit-log-maxsize=100000", // megabytes: a rotation would hide requests from a reader
		"--shutdown-delay-duration=0s",
		"--feature-gates=APIResponseCompression=false", // compression saves time only in a network
	}
	if i.state.Real {
		args = append(args, i.nodeFlags()...)
	}
	return &Process{Name: APIServer, Port: i.state.Ports[apiPort], Args: args}
}

func (i *Instance) controllerManager() *Process {
	kubeconfig := i.credential("controller-manager.kubeconfig")
	return &Process{Name: ControllerManager, Port: i.state.Ports[controllerPort], Args: []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", i.state.Ports[controllerPort]),
		"--leader-elect=false", "--use-service-account-credentials", "--profiling=false",
		"--service-account-private-key-file=" + i.credential("sa.key"), "--root-ca-file=" + i.credential("ca.crt"),
		"--kube-api-qps=" + strconv.Itoa(clientQPS), "--kube-api-burst=" + strconv.Itoa(clientBurst),
	}}
}

func (i *Instance) scheduler() *Process {
	kubeconfig := i.credential("scheduler.kubeconfig")
	return &Process{Name: Scheduler, Port: i.state.Ports[schedulerPort], Args: []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", i.state.Ports[schedulerPort]),
		"--leader-elect=false", "--profiling=false",
		"--kube-api-qps=" + strconv.Itoa(clientQPS), "--kube-api-burst=" + strconv.Itoa(clientBurst),
	}}
}

func (i *Instance) kwok() *Process {
	return &Process{Name: Kwok, Args: []string{
		"--kubeconfig=" + i.credential("kwok.kubeconfig"), "--config=" + i.file("stages.yaml"),
		"--manage-all-nodes=true", "--node-ip=10.0.0.1", "--cidr=10.1.0.0/16",
		fmt.Sprintf("--node-lease-duration-seconds=%d", leaseSeconds),
	}}
}

// subjects returns the subjects of the certificates of an instance. kwok has an administrator's permissions under its own name, so
// the audit log distinguishes its requests from those of tests.
func (i *Instance) subjects() []subject {
	all := []subject{
		{file: "apiserver", name: APIServer, hosts: []string{
			"127.0.0.1", "10.96.0.1", node.Address, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
		}},
		{file: "admin", name: AdminUser, group: adminGroup},
		{file: "kwok", name: "testcluster:kwok", group: adminGroup},
		{file: "controller-manager", name: "system:kube-controller-manager"},
		{file: "scheduler", name: "system:kube-scheduler"},
	}
	if i.state.Real {
		all = append(all, nodeSubjects()...)
	}
	return all
}
