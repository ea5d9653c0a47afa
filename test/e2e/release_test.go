//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/docs"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

const (
	// releaseTimeout bounds `make release`, which compiles with other flags than all tests.
	releaseTimeout = 20 * time.Minute
	// exampleRegistry is the registry in the documentation.
	exampleRegistry = "registry.example.com/team"

	// plainRegistryHost configures containerd to use HTTP for a registry.
	plainRegistryHost = "server = \"http://%[1]s\"\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n"
)

// release is a cluster without the operator, with a registry from which its node pulls.
type release struct {
	*cluster.Instance
	// registry is the address of the registry with a path, valid on the machine and on the node.
	registry string
	// dist is the output folder of the release.
	dist string
	page *docs.Reader
}

// newRelease starts a cluster, named after the page, and a registry, and opens the page with a reader that has Helm and kubectl.
func newRelease(ctx context.Context, page string) *release {
	GinkgoHelper()
	name := strings.ToLower(strings.TrimSuffix(filepath.Base(page), ".md"))
	r := &release{dist: filepath.Join(GinkgoT().TempDir(), "dist")}
	var err error
	r.Instance, err = cluster.Start(ctx, cluster.Options{
		Name: fmt.Sprintf("e2e-%s-%d", name, os.Getpid()), Platform: cluster.Bare, Sets: []cluster.Set{cluster.KServe, cluster.KubeRay}, Real: true, Ports: 1,
		Ephemeral: true, Progress: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) { Expect(r.Stop(ctx)).To(Succeed()) })
	DeferCleanup(r.describeFailure)

	port := r.Ports()[len(r.Ports())-1]
	host := fmt.Sprintf("127.0.0.1:%d", port)
	r.registry = host + "/team"
	hosts := filepath.Join(r.Dir(), "registries", host)
	Expect(os.MkdirAll(hosts, 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(hosts, "hosts.toml"), fmt.Appendf(nil, plainRegistryHost, host), 0o600)).To(Succeed())
	program, err := cluster.BuildPeer(ctx, cluster.Registry, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	_, err = r.StartProcess("registry", program, []string{fmt.Sprint("-port=", port)}, nil)
	Expect(err).NotTo(HaveOccurred())

	r.packOperands(ctx)
	r.page = r.reader(ctx, page)
	return r
}

// packOperands adds the images of the operands to the node. Only images for RayClusters on OpenShift and their certificates are
// named by digests, which only their publishers can build; no pod of the page uses them.
func (r *release) packOperands(ctx context.Context) {
	GinkgoHelper()
	store, err := r.Images()
	Expect(err).NotTo(HaveOccurred())
	Expect(operator.Operands(ctx, store)).To(Succeed())
	packRegistry(ctx, store)
	Expect(images.MLflow(ctx, store, checkout, images.MLflowImage)).To(Succeed())
}

// reader runs the commands of pages with another registry, which serves plain HTTP, and builds the release for this machine only
// and outside the checkout.
func (r *release) reader(ctx context.Context, page string) *docs.Reader {
	GinkgoHelper()
	helm, err := cluster.BuildPeer(ctx, cluster.Helm, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	folder := GinkgoT().TempDir()
	for name, program := range map[string]string{"helm": helm, "kubectl": kubectlPath} {
		Expect(os.Symlink(program, filepath.Join(folder, name))).To(Succeed())
	}
	here := "linux/" + runtime.GOARCH
	return &docs.Reader{
		Page: page, Root: checkout, Folder: folder, Kubectl: filepath.Join(folder, "kubectl"), Kubeconfig: r.Kubeconfig(), Satisfied: []string{"registry"},
		Replace: strings.NewReplacer(exampleRegistry, r.registry, "dist/", r.dist+"/", "helm install ", "helm install --plain-http "),
		Env: []string{
			"DIST=" + r.dist, "PLATFORMS=" + here, "SYSTEMS=" + here, "ALLOW_DIRTY=1",
			"HELM_CACHE_HOME=" + folder, "HELM_CONFIG_HOME=" + folder, "HELM_DATA_HOME=" + folder,
		},
		Timeout: releaseTimeout,
	}
}

func (r *release) describeFailure(ctx context.Context) {
	printIfFailed(ctx, r.Kubectl, [][]string{
		{"get", "pods,pvc", "-A", "-o", "wide"}, {"get", "events", "-A", "--sort-by=.lastTimestamp"}, {"-n", operatorNamespace, "logs", managerDeployment, "--tail=50"},
	})
}

func (r *release) kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := r.Kubectl(ctx, "", args...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// digest returns the digest of the built operator image.
func (r *release) digest() string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(r.dist, "images", "odh-platform-operator", "index.json"))
	Expect(err).NotTo(HaveOccurred())
	var index struct{ Manifests []struct{ Digest string } }
	Expect(json.Unmarshal(content, &index)).To(Succeed())
	Expect(index.Manifests).To(HaveLen(1))
	return index.Manifests[0].Digest
}

// runsPacked expects that the operator runs the built image, pulled from the registry.
func (r *release) runsPacked(ctx context.Context, version string) {
	GinkgoHelper()
	image := r.registry + "/odh-platform-operator"
	Expect(r.kubectl(ctx, "-n", operatorNamespace, "get", managerDeployment, "-o", "jsonpath={.spec.template.spec.containers[*].image}")).
		To(Equal(image + ":v" + version + "@" + r.digest()))
	running := image + "@" + r.digest() + " true" // in each replica
	Eventually(ctx, func(ctx context.Context) string {
		return r.kubectl(ctx, "-n", operatorNamespace, "get", "pods", managerPods, "-o",
			`jsonpath={range .items[*].status.containerStatuses[*]}{.imageID} {.ready}{"\n"}{end}`)
	}, podTimeout).Should(Equal(running + "\n" + running))
}

// repairs expects that a running operator recreates a child of the sample registry in the namespace.
func (r *release) repairs(ctx context.Context, namespace string) {
	GinkgoHelper()
	const role = "role/registry-user-" + sample
	r.kubectl(ctx, "-n", namespace, "delete", role)
	Eventually(ctx, func(ctx context.Context) error {
		_, err := r.Kubectl(ctx, "", "-n", namespace, "get", role)
		return err
	}, podTimeout).Should(Succeed(), "the Role is not created again")
}

// remainingObjects lists the objects that must remain after the operator is uninstalled.
func (r *release) remainingObjects(ctx context.Context, namespace string) string {
	GinkgoHelper()
	return r.kubectl(ctx, "get", "crd", "--selector=odh-platform-operator/keep=crd", "-o", "name") + "\n" +
		r.kubectl(ctx, "-n", namespace, "get", "modelregistries,deployments,services,pvc,secrets", "-o", "name")
}

// commands returns the commands of those blocks of the page that have a need.
func (r *release) commands(need string) (all []string) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(checkout, r.page.Page))
	Expect(err).NotTo(HaveOccurred())
	for _, block := range docs.Blocks(string(text)) {
		if block.Value("needs") == need {
			all = append(all, block.Commands()...)
		}
	}
	return all
}

// buildVersion builds another version of the release with the commands of the page.
func (r *release) buildVersion(ctx context.Context, version string) {
	GinkgoHelper()
	for _, command := range r.commands("registry") {
		r.page.Type(ctx, strings.ReplaceAll(command, "VERSION=0.2.0", "VERSION="+version))
	}
}

// refuses waits until a server-side dry run is rejected with the text.
func (r *release) refuses(ctx context.Context, manifest, text string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		_, err := r.Kubectl(ctx, manifest, "-n", kept, "create", "--dry-run=server", "-f", "-")
		return err
	}, podTimeout).Should(MatchError(ContainSubstring(text)))
}

// refusesInvalid waits until the webhooks of registries, catalogs and AppWrappers reject invalid objects.
func (r *release) refusesInvalid(ctx context.Context) {
	GinkgoHelper()
	r.refuses(ctx, unfinishedRegistry, noDatabase)
	r.refuses(ctx, secondCatalog, "catalog resource name must be 'catalog'")
	r.refuses(ctx, emptyAppWrapper, "components contains no podspecs")
}

// rolledOut waits until the rollout of a Deployment is complete.
func (r *release) rolledOut(ctx context.Context, namespace, deployment string) {
	GinkgoHelper()
	r.kubectl(ctx, "-n", namespace, "rollout", "status", deployment, fmt.Sprint("--timeout=", podTimeout))
}

func (r *release) applyServerSide(ctx context.Context, manifests string) {
	GinkgoHelper()
	_, err := r.Kubectl(ctx, manifests, "apply", "--server-side", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// offer applies a file of the page, which is written for version 0.2.0, with the catalog of a version.
func (r *release) offer(ctx context.Context, file, version string) {
	GinkgoHelper()
	text, err := os.ReadFile(r.page.Saved[file])
	Expect(err).NotTo(HaveOccurred())
	_, err = r.Kubectl(ctx, strings.ReplaceAll(string(text), ":v0.2.0", ":v"+version), "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// installBlocks returns the commands of docs/install.md that require a release.
func installBlocks() [][]string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(checkout, "docs", "install.md"))
	Expect(err).NotTo(HaveOccurred())
	var all [][]string
	for _, block := range docs.Blocks(string(text)) {
		if block.Value("needs") == "registry" {
			all = append(all, block.Commands())
		}
	}
	return all
}

// uninstall runs the commands of docs/install.md that uninstall the chart, and waits until no object of the operator is left.
func (r *release) uninstall(ctx context.Context) {
	GinkgoHelper()
	for _, commands := range installBlocks() {
		if strings.HasPrefix(commands[0], "helm uninstall ") {
			for _, command := range commands {
				r.page.Type(ctx, command)
			}
		}
	}
	Eventually(ctx, func(ctx context.Context) string {
		return r.kubectl(ctx, "-n", operatorNamespace, "get", "deployments,pods,services,leases", "-o", "name")
	}, podTimeout).Should(BeEmpty())
}

var _ = Describe("A release", func() {
	It("can be installed from its registry by Helm and by kubectl, as in the README", func(ctx SpecContext) {
		const kept = "kept"
		r := newRelease(ctx, "README.md")
		var before string
		r.page.After = map[string]func(context.Context){
			"helm install": func(ctx context.Context) {
				r.runsPacked(ctx, "0.2.0")
				r.kubectl(ctx, "create", "namespace", kept)
				r.kubectl(ctx, "-n", kept, "apply", "-f", filepath.Join(checkout, "config", "samples", "modelregistry_generated.yaml"))
				r.kubectl(ctx, "-n", kept, "wait", "modelregistry/"+sample, "--for=condition=Available", fmt.Sprint("--timeout=", podTimeout))
				before = r.remainingObjects(ctx, kept)
				Expect(before).To(SatisfyAll(ContainSubstring("mlflows.mlflow.opendatahub.io"), ContainSubstring("persistentvolumeclaim/"), ContainSubstring("secret/")))
				r.uninstall(ctx)
				Expect(r.remainingObjects(ctx, kept)).To(Equal(before))
			},
			"kubectl -n opendatahub rollout status": func(ctx context.Context) {
				r.runsPacked(ctx, "0.2.0")
				r.repairs(ctx, kept)
				Expect(r.remainingObjects(ctx, kept)).To(Equal(before))
				// The page creates a registry of the same name, and these names are unique in the cluster.
				r.kubectl(ctx, "-n", kept, "delete", "modelregistry", sample, "--timeout=120s")
			},
		}
		r.page.Read(ctx)
		Expect(before).NotTo(BeEmpty(), "the page has no installation by Helm")

		By("checking the commands of the page about installation")
		for _, command := range slices.Concat(installBlocks()...) {
			Expect(r.page.Typed).To(ContainElement(r.page.Replace.Replace(command)))
		}
	}, SpecTimeout(specTimeout))
})
