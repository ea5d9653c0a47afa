//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/node"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

const (
	olmV1Namespace       = "olmv1-system"
	certManagerNamespace = "cert-manager"
	// olmV1Deployment is the Deployment of the controller of ClusterExtensions.
	olmV1Deployment = "deployment/operator-controller-controller-manager"
	// catalogdDeployment is the Deployment that serves ClusterCatalogs.
	catalogdDeployment = "deployment/catalogd-controller-manager"
	// extensionFile is the file that docs/olm.md names for the ClusterCatalog and the ClusterExtension.
	extensionFile = "extension.yaml"
	// registriesPatch mounts the ConfigMap of registries in testdata/olmv1.yaml.
	registriesPatch = `{"spec": {"template": {"spec": {"volumes": [{"name": "registries", "configMap": {"name": "registries"}}],
		"containers": [{"name": "manager", "volumeMounts": [{"name": "registries", "mountPath": "/etc/containers"}]}]}}}}`
)

var (
	//go:embed testdata/cert_manager.yaml
	certManagerObjects string
	//go:embed testdata/olmv1.yaml
	registriesObject string
)

// olmV1Cluster is a cluster with OLM v1 and a catalog from the registry of a release.
type olmV1Cluster struct{ *release }

func newOLMV1(ctx context.Context) *olmV1Cluster {
	GinkgoHelper()
	o := &olmV1Cluster{release: newRelease(ctx, "docs/olm.md")}
	o.page.Replace = strings.NewReplacer(exampleRegistry, o.registry)
	programs, err := cluster.BuildOLMV1(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	store, err := o.Images()
	Expect(err).NotTo(HaveOccurred())
	Expect(images.OLMV1(store, programs)).To(Succeed())
	o.installCertManager(ctx)
	o.installOLM(ctx)
	return o
}

// installCertManager applies the CRDs of cert-manager without their labels, which are templates of its chart, and starts its controllers.
func (o *olmV1Cluster) installCertManager(ctx context.Context) {
	GinkgoHelper()
	files, err := cluster.CertManagerDir(ctx)
	Expect(err).NotTo(HaveOccurred())
	crdFiles, err := filepath.Glob(filepath.Join(files, "deploy", "crds", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(crdFiles).NotTo(BeEmpty())
	for _, file := range crdFiles {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		var crd map[string]any
		Expect(yaml.Unmarshal(text, &crd)).To(Succeed())
		metadata, _ := crd["metadata"].(map[string]any)
		delete(metadata, "labels")
		text, err = json.Marshal(crd)
		Expect(err).NotTo(HaveOccurred())
		o.applyServerSide(ctx, string(text))
	}
	o.kubectl(ctx, "wait", "crd", "--all", "--for=condition=Established", fmt.Sprint("--timeout=", podTimeout))
	o.applyServerSide(ctx, certManagerObjects)
	o.waitRollout(ctx, certManagerNamespace, "deployment/cert-manager")
}

// installOLM applies the manifests of OLM v1 with its experimental features, which include webhooks of bundles.
func (o *olmV1Cluster) installOLM(ctx context.Context) {
	GinkgoHelper()
	files, err := cluster.OLMV1Dir(ctx)
	Expect(err).NotTo(HaveOccurred())
	o.kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(files, "manifests", "experimental.yaml"))
	o.exposeRegistry(ctx)
	for _, deployment := range []string{olmV1Deployment, catalogdDeployment} {
		o.kubectl(ctx, "-n", olmV1Namespace, "patch", deployment, "-p", registriesPatch)
		o.waitRollout(ctx, olmV1Namespace, deployment)
	}
	Eventually(ctx, func(ctx context.Context) (string, error) {
		return o.Kubectl(ctx, "", "get", "mutatingwebhookconfiguration", "catalogd-mutating-webhook-configuration", "-o", "jsonpath={.webhooks[*].clientConfig.caBundle}")
	}, podTimeout).ShouldNot(BeEmpty())
}

// exposeRegistry forwards a port of the node to the registry, which listens only on loopback, so that the pods of OLM can pull from it.
func (o *olmV1Cluster) exposeRegistry(ctx context.Context) {
	GinkgoHelper()
	address := strings.TrimSuffix(o.registry, "/team")
	_, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred())
	programs, err := cluster.Build(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	_, err = o.StartProcess("gateway", programs["etcd"], []string{"gateway", "start", "--endpoints=" + address, "--listen-addr=" + net.JoinHostPort(node.Address, port)}, nil)
	Expect(err).NotTo(HaveOccurred())
	o.applyServerSide(ctx, os.Expand(registriesObject, func(name string) string { return map[string]string{"PORT": port, "NODE": node.Address}[name] }))
}

// install runs the commands of the page that install and configure the operator.
func (o *olmV1Cluster) install(ctx context.Context) {
	GinkgoHelper()
	commands := o.commands("olmv1")
	for _, command := range commands[:firstDeletion(commands)] {
		o.page.Type(ctx, command)
	}
}

// waitVersion waits until OLM has installed the version and its rollout is complete.
func (o *olmV1Cluster) waitVersion(ctx context.Context, version string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (string, error) {
		return o.Kubectl(ctx, "", "get", "clusterextension", "odh-platform-operator", "-o",
			`jsonpath={.status.install.bundle.version} {.status.conditions[?(@.type=="Progressing")].reason}`)
	}, csvTimeout).Should(Equal(version + " Succeeded"))
	o.waitRollout(ctx, operatorNamespace, managerDeployment)
	o.expectImage(ctx, version)
}

// uninstall runs the commands of the page that uninstall the operator.
func (o *olmV1Cluster) uninstall(ctx context.Context) {
	GinkgoHelper()
	commands := o.commands("olmv1")
	for _, command := range commands[firstDeletion(commands):] {
		o.page.Type(ctx, command)
	}
}

// firstDeletion returns the index of the first command that deletes.
func firstDeletion(commands []string) int {
	GinkgoHelper()
	index := slices.IndexFunc(commands, func(command string) bool { return strings.HasPrefix(command, "kubectl delete ") })
	Expect(index).To(BeNumerically(">", 0))
	return index
}

// listCreated returns the objects that OLM created for the operator, without CRDs and ClusterRoles.
func (o *olmV1Cluster) listCreated(ctx context.Context) (string, error) {
	const kinds = "serviceaccounts,services,deployments,configmaps,secrets,networkpolicies,poddisruptionbudgets,certificates,issuers," +
		"mutatingwebhookconfigurations,validatingwebhookconfigurations,clusterrolebindings"
	return o.Kubectl(ctx, "", "-n", operatorNamespace, "get", kinds, "-o", "name", "--selector=olm.operatorframework.io/owner-name=odh-platform-operator")
}

// describeFailure prints the status and logs of OLM after a failure.
func (o *olmV1Cluster) describeFailure(ctx context.Context) {
	if o == nil { // the cluster could not be started
		return
	}
	printIfFailed(ctx, o.Kubectl, [][]string{
		{"get", "clustercatalogs,clusterextensions", "-o", "yaml"},
		{"get", "pods,certificates,issuers,clusterissuers", "-A"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"-n", certManagerNamespace, "logs", "deployment/cert-manager", "--tail=60"},
		{"-n", olmV1Namespace, "logs", catalogdDeployment, "--tail=60"},
		{"-n", olmV1Namespace, "logs", olmV1Deployment, "--tail=60"},
		{"-n", operatorNamespace, "logs", managerDeployment, "--tail=50"},
	})
}
