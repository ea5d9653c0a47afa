package cluster

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// Versions of Kubernetes of the control plane.
const (
	KubernetesVersion = "v1.37.2"
	// OldestKubernetesVersion is the latest patch of the oldest minor version that the operator supports.
	OldestKubernetesVersion = "v1.30.14"
)

// VersionVariable is the environment variable with the version of the control plane: "oldest", or empty for the newest.
const VersionVariable = "TEST_KUBERNETES"

// module is a group of programs that are built together.
type module struct {
	dir      string // folder of the Go module that requires them, below test/cluster/binaries; empty for that folder
	ldflags  string // additional linker flags
	cgoTags  string // build tags of programs that need the C compiler
	tags     string // build tags of programs that do not
	compiled bool   // the programs of the user and the published programs have another version
	packages []string
}

// binaryModules returns the programs in the order in which an instance starts them, then kubectl. The oldest Kubernetes is last.
func binaryModules() []module {
	servers := []string{
		"k8s.io/kubernetes/cmd/kube-apiserver",
		"k8s.io/kubernetes/cmd/kube-controller-manager",
		"k8s.io/kubernetes/cmd/kube-scheduler",
	}
	others := []string{"sigs.k8s.io/kwok/cmd/kwok", "k8s.io/kubernetes/cmd/kubectl"}
	all := module{ldflags: versionStamp(KubernetesVersion), packages: []string{"go.etcd.io/etcd/server/v3"}}
	if os.Getenv(VersionVariable) != "oldest" {
		all.packages = slices.Concat(all.packages, servers, others)
		return []module{all}
	}
	all.packages = append(all.packages, others...)
	return []module{all, {dir: "oldest", ldflags: versionStamp(OldestKubernetesVersion), compiled: true, packages: servers}}
}

// nodeModules returns the programs of a real node, in addition to those of the control plane.
func nodeModules() []module {
	const plugins = "github.com/containernetworking/plugins/plugins/"
	return []module{
		{ldflags: "-X main.version=1.5.2", cgoTags: "seccomp", packages: []string{"github.com/opencontainers/runc"}},
		{packages: []string{plugins + "main/bridge", plugins + "main/loopback", plugins + "ipam/host-local"}},
		{ldflags: "-X github.com/containerd/containerd/v2/version.Version=2.4.2", packages: []string{
			"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"github.com/containerd/containerd/v2/cmd/containerd",
		}},
		{ldflags: versionStamp(KubernetesVersion), packages: []string{"k8s.io/kubernetes/cmd/kubelet", "k8s.io/kubernetes/cmd/kube-proxy"}},
		{packages: []string{modulePath + "/test/cluster/binaries/coredns"}},
	}
}

// olmVersion is the version of the Operator Lifecycle Manager and of its module.
const olmVersion = "v0.46.0"

// olmModule returns the programs of the Operator Lifecycle Manager and of its catalogs. The tags are those of its Makefile for builds
// without C libraries.
func olmModule() module {
	const repository = "github.com/operator-framework/operator-lifecycle-manager/"
	return module{
		dir: "olm", tags: "json1,containers_image_openpgp,exclude_graphdriver_btrfs", ldflags: "-X " + repository + "pkg/version.OLMVersion=" + olmVersion,
		packages: []string{
			repository + "cmd/olm", repository + "cmd/catalog", repository + "cmd/package-server", repository + "cmd/copy-content", repository + "util/cpb",
			"github.com/operator-framework/operator-registry/cmd/opm", "github.com/grpc-ecosystem/grpc-health-probe",
		},
	}
}

// olmV1Version is the version of the module of OLM v1.
const olmV1Version = "v1.5.1"

// certManager is the module of cert-manager.
const certManager = "github.com/cert-manager/cert-manager"

// olmV1Module returns the programs of the Operator Lifecycle Manager v1, with the tag of its Makefile, and cert-manager, which it requires.
func olmV1Module() module {
	const repository = "github.com/operator-framework/operator-controller/"
	return module{
		dir: "olmv1", tags: "containers_image_openpgp", ldflags: "-X " + repository + "internal/shared/version.version=" + olmV1Version,
		packages: []string{repository + "cmd/operator-controller", repository + "cmd/catalogd", modulePath + "/test/cluster/binaries/olmv1/certmanager"},
	}
}

// monitoringModule returns the Prometheus operator, the program that reloads the configuration of Prometheus, and Prometheus, with service
// discovery only in Kubernetes.
func monitoringModule() module {
	const repository = "github.com/prometheus-operator/prometheus-operator/"
	return module{dir: "monitoring", tags: "remove_all_sd,enable_kubernetes_sd", packages: []string{
		repository + "cmd/operator", repository + "cmd/prometheus-config-reloader", "github.com/prometheus/prometheus/cmd/prometheus",
	}}
}

// Peer is a program of another project that tests run together with the manager.
type Peer string

// The peers. Most of their modules require an older Kubernetes than that of the control plane, and KServe an even older one.
const (
	Kueue           Peer = "kueue"
	JobSet          Peer = "jobset"
	KubeRayOperator Peer = "kuberay"
	// TrainingOperator runs PyTorchJobs.
	TrainingOperator Peer = "training-operator"
	// Etcdctl is the command-line client of etcd. Etcdutl works on its files.
	Etcdctl Peer = "etcdctl"
	Etcdutl Peer = "etcdutl"
	// Helm installs charts. Registry stores charts and images, in memory.
	Helm     Peer = "helm"
	Registry Peer = "registry"
	// KubeRBACProxy is the sidecar of servers that authorizes requests with the API server.
	KubeRBACProxy Peer = "kube-rbac-proxy"
	// KServeTypes is a program of this repository with the types of KServe. KServeController is the controller of InferenceServices.
	KServeTypes      Peer = "kserve-types"
	KServeController Peer = "kserve"
	// EnvoyGateway is a controller of the Gateway API. Its proxy, Envoy, is a package of PyPI.
	EnvoyGateway Peer = "envoy-gateway"
	// Contour is an Ingress controller with the same proxy.
	Contour Peer = "contour"
)

// SuitePeers are the peers of the suites below test/integration and test/conformance, except for nightly specs. `make test` builds them
// before it starts suites, because a compilation in a suite would exceed the timeouts of its specs.
var SuitePeers = []Peer{Kueue, KubeRayOperator, Etcdctl, Etcdutl, Helm, KServeTypes}

// peers maps each peer to its program.
var peers = map[Peer]module{
	Kueue:            {dir: "peers", packages: []string{"sigs.k8s.io/kueue/cmd/kueue"}},
	JobSet:           {dir: "peers", packages: []string{"sigs.k8s.io/jobset"}},
	TrainingOperator: {dir: "kuberay", packages: []string{"github.com/kubeflow/training-operator/cmd/training-operator.v1"}},
	KubeRayOperator:  {dir: "kuberay", packages: []string{"github.com/ray-project/kuberay/ray-operator"}},
	Etcdctl:          {packages: []string{"go.etcd.io/etcd/etcdctl/v3"}},
	Etcdutl:          {packages: []string{"go.etcd.io/etcd/etcdutl/v3"}},
	Helm:             {packages: []string{"helm.sh/helm/v4/cmd/helm"}},
	Registry:         {packages: []string{"github.com/google/go-containerregistry/cmd/registry"}},
	KubeRBACProxy:    {dir: "peers", packages: []string{"github.com/brancz/kube-rbac-proxy/cmd/kube-rbac-proxy"}},
	KServeTypes:      {dir: "kserve", packages: []string{modulePath + "/test/cluster/binaries/kserve"}},
	KServeController: {dir: "kserve", packages: []string{"github.com/kserve/kserve/cmd/manager"}},
	EnvoyGateway:     {dir: "gateway", packages: []string{"github.com/envoyproxy/gateway/cmd/envoy-gateway"}},
	Contour:          {dir: "contour", packages: []string{"github.com/projectcontour/contour/cmd/contour"}},
}

// versionStamp returns the linker flags of the release scripts of Kubernetes. Without them, the server reports v0.0.0-master and version
// checks of clients fail. The date is constant, so builds are reproducible.
func versionStamp(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	values := [][2]string{
		{"gitVersion", version}, {"gitMajor", parts[0]}, {"gitMinor", parts[1]},
		{"gitTreeState", "clean"}, {"buildDate", "1970-01-01T00:00:00Z"},
	}
	var flags []string
	for _, target := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, value := range values {
			flags = append(flags, fmt.Sprintf("-X %s.%s=%s", target, value[0], value[1]))
		}
	}
	return strings.Join(flags, " ")
}

// programName returns the name of a package's program.
func programName(pkg string) string {
	if name := linkedName(pkg); name != "server" {
		return name
	}
	return "etcd"
}

// linkedName returns the file name that Go gives a package's program. Go ignores a major version at the end of the path.
func linkedName(pkg string) string {
	name := path.Base(pkg)
	if strings.Trim(name, "0123456789") == "v" {
		return path.Base(path.Dir(pkg))
	}
	return name
}

func programNames(packages []string) (names []string) {
	for _, pkg := range packages {
		names = append(names, programName(pkg))
	}
	return names
}
