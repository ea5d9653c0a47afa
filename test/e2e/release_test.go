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
	// releaseTimeout limits one command of a page. `make release` is slow, because it compiles with flags that no test uses.
	releaseTimeout = 20 * time.Minute
	// exampleRegistry is the registry of the documentation.
	exampleRegistry = "registry.example.com/team"

	// plainRegistryHost configures containerd to use HTTP for a registry.
	plainRegistryHost = "server = \"http://%[1]s\"\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n"
)

// release is a cluster without the operator, and a registry from which its node pulls images.
type release struct {
	*cluster.Instance
	// registry is the address and path of the registry, which the machine and the node reach.
	registry string
	// dist is the output folder of the release.
	dist string
	page *docs.Reader
}

// newRelease starts a registry and a cluster with the name of the page, and returns them with a reader of the page.
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

	r.addOperandImages(ctx)
	r.page = r.reader(ctx, page)
	return r
}

// addOperandImages adds the images of the operands to the node. It omits the images that the operator names by digest, which are the OAuth
// proxies of OpenShift and the certificate generator of RayClusters: no pod of the page uses them.
func (r *release) addOperandImages(ctx context.Context) {
	GinkgoHelper()
	store, err := r.Images()
	Expect(err).NotTo(HaveOccurred())
	Expect(operator.PackOperandImages(ctx, store)).To(Succeed())
	buildRegistryImages(ctx, store)
	Expect(images.MLflow(ctx, store, checkout, images.MLflowImage)).To(Succeed())
}

// reader returns a reader that runs the commands of the page with the registry, which serves plain HTTP. Its builds of the release are
// only for the platform of this machine, and outside the checkout.
func (r *release) reader(ctx context.Context, page string) *docs.Reader {
	GinkgoHelper()
	helm, err := cluster.BuildPeer(ctx, cluster.Helm, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	folder := GinkgoT().TempDir()
	for name, program := range map[string]string{"helm": helm, "kubectl": kubectlPath} {
		Expect(os.Symlink(program, filepath.Join(folder, name))).To(Succeed())
	}
	platform := "linux/" + runtime.GOARCH
	return &docs.Reader{
		Page: page, Root: checkout, Folder: folder, Kubectl: filepath.Join(folder, "kubectl"), Kubeconfig: r.Kubeconfig(), Satisfied: []string{"registry"},
		Replace: strings.NewReplacer(exampleRegistry, r.registry, "dist/", r.dist+"/", "helm install ", "helm install --plain-http "),
		Env: []string{
			"DIST=" + r.dist, "PLATFORMS=" + platform, "SYSTEMS=" + platform, "ALLOW_DIRTY=1",
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

// expectImage expects that the operator runs the built image, pulled from the registry.
func (r *release) expectImage(ctx context.Context, version string) {
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

// expectRepair deletes a child of the sample registry, and expects that the operator recreates it.
func (r *release) expectRepair(ctx context.Context, namespace string) {
	GinkgoHelper()
	const role = "role/registry-user-" + sample
	r.kubectl(ctx, "-n", namespace, "delete", role)
	Eventually(ctx, func(ctx context.Context) error {
		_, err := r.Kubectl(ctx, "", "-n", namespace, "get", role)
		return err
	}, podTimeout).Should(Succeed(), "the Role was not recreated")
}

// remainingObjects returns the objects that must remain after the operator is uninstalled.
func (r *release) remainingObjects(ctx context.Context, namespace string) string {
	GinkgoHelper()
	return r.kubectl(ctx, "get", "crd", "--selector=odh-platform-operator/keep=crd", "-o", "name") + "\n" +
		r.kubectl(ctx, "-n", namespace, "get", "modelregistries,deployments,services,pvc,secrets", "-o", "name")
}

// commands returns the commands of the blocks of the page that require a condition.
func (r *release) commands(condition string) (all []string) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(checkout, r.page.Page))
	Expect(err).NotTo(HaveOccurred())
	for _, block := range docs.Blocks(string(text)) {
		if block.Value("needs") == condition {
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

// expectRejected waits until a server-side dry run is rejected with the text.
func (r *release) expectRejected(ctx context.Context, manifest, text string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		_, err := r.Kubectl(ctx, manifest, "-n", userNamespace, "create", "--dry-run=server", "-f", "-")
		return err
	}, podTimeout).Should(MatchError(ContainSubstring(text)))
}

// expectInvalidRejected waits until the webhooks of registries, catalogs and AppWrappers reject invalid objects.
func (r *release) expectInvalidRejected(ctx context.Context) {
	GinkgoHelper()
	r.expectRejected(ctx, registryWithoutDatabase, noDatabaseMessage)
	r.expectRejected(ctx, secondCatalog, "catalog resource name must be 'catalog'")
	r.expectRejected(ctx, emptyAppWrapper, "components contains no podspecs")
}

// waitRollout waits until the rollout of a Deployment is complete.
func (r *release) waitRollout(ctx context.Context, namespace, deployment string) {
	GinkgoHelper()
	r.kubectl(ctx, "-n", namespace, "rollout", "status", deployment, fmt.Sprint("--timeout=", podTimeout))
}

func (r *release) applyServerSide(ctx context.Context, manifests string) {
	GinkgoHelper()
	_, err := r.Kubectl(ctx, manifests, "apply", "--server-side", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// applyVersion applies a file of the page, which names version 0.2.0, with another version.
func (r *release) applyVersion(ctx context.Context, file, version string) {
	GinkgoHelper()
	text, err := os.ReadFile(r.page.Saved[file])
	Expect(err).NotTo(HaveOccurred())
	_, err = r.Kubectl(ctx, strings.ReplaceAll(string(text), ":v0.2.0", ":v"+version), "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// installBlocks returns the commands of each block of docs/install.md that requires a registry.
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

// uninstall runs the commands of docs/install.md that uninstall the chart, and waits until the objects of the operator are deleted.
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
	It("is installed from its registry with Helm and with kubectl, as in the README", func(ctx SpecContext) {
		r := newRelease(ctx, "README.md")
		var before string
		r.page.After = map[string]func(context.Context){
			"helm install": func(ctx context.Context) {
				r.expectImage(ctx, "0.2.0")
				r.kubectl(ctx, "create", "namespace", userNamespace)
				r.kubectl(ctx, "-n", userNamespace, "apply", "-f", filepath.Join(checkout, "config", "samples", "modelregistry_generated.yaml"))
				r.kubectl(ctx, "-n", userNamespace, "wait", "modelregistry/"+sample, "--for=condition=Available", fmt.Sprint("--timeout=", podTimeout))
				before = r.remainingObjects(ctx, userNamespace)
				Expect(before).To(SatisfyAll(ContainSubstring("mlflows.mlflow.opendatahub.io"), ContainSubstring("persistentvolumeclaim/"), ContainSubstring("secret/")))
				r.uninstall(ctx)
				Expect(r.remainingObjects(ctx, userNamespace)).To(Equal(before))
			},
			"kubectl -n opendatahub rollout status": func(ctx context.Context) {
				r.expectImage(ctx, "0.2.0")
				r.expectRepair(ctx, userNamespace)
				Expect(r.remainingObjects(ctx, userNamespace)).To(Equal(before))
				// The page creates a registry with this name, which must be unique in the cluster.
				r.kubectl(ctx, "-n", userNamespace, "delete", "modelregistry", sample, "--timeout=120s")
			},
		}
		r.page.Read(ctx)
		Expect(before).NotTo(BeEmpty(), "the page has no installation with Helm")

		By("comparing the commands with those of docs/install.md")
		for _, command := range slices.Concat(installBlocks()...) {
			Expect(r.page.Typed).To(ContainElement(r.page.Replace.Replace(command)))
		}
	}, SpecTimeout(specTimeout))
})
