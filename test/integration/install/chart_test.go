package install_test

import (
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/parity"
)

// releaseChart generates the chart of a release and returns its folder.
func releaseChart(ctx SpecContext) string {
	GinkgoHelper()
	out := GinkgoT().TempDir()
	output, err := command(ctx, "go", "run", "./cmd/generate/install", "--version", "1.2.3", "--image", image, "--out", out)
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	return filepath.Join(out, "chart", "odh-platform-operator")
}

var _ = Describe("the chart of a release", func() {
	// [C-16] CRDs may exist: they remain when a Helm release is uninstalled, and the manifests and the legacy operators install them too.
	It("takes ownership of existing CRDs only with --take-ownership", func(ctx SpecContext) {
		const namespace = "platform-helm"
		program, err := cluster.BuildPeer(ctx, cluster.Helm, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		mustMake(ctx, "install")
		mustKubectl(ctx, "create", "namespace", namespace)
		DeferCleanup(func(ctx SpecContext) {
			mustMake(ctx, "uninstall", "FORCE=1")
			mustKubectl(ctx, "delete", "namespace", namespace, "--timeout=2m")
		}, NodeTimeout(specTimeout))
		install := []string{"install", "tools", releaseChart(ctx), "--namespace", namespace, "--dry-run=server"}
		output, err := command(ctx, program, install...)
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("invalid ownership metadata"))
		output, err = command(ctx, program, append(install, "--take-ownership")...)
		Expect(err).NotTo(HaveOccurred(), "%s", output)
	}, SpecTimeout(specTimeout))

	It("installs into the given namespace, and the manager becomes ready with its arguments, environment and permissions", func(ctx SpecContext) {
		const namespace = "platform-tools"
		chart, err := loader.Load(releaseChart(ctx))
		Expect(err).NotTo(HaveOccurred())
		objects, err := parity.Render(ctx, chart, parity.Release{Namespace: namespace}, nil)
		Expect(err).NotTo(HaveOccurred())
		// Helm creates CRDs first.
		slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return creationOrder(a) - creationOrder(b) })
		mustKubectl(ctx, "create", "namespace", namespace)
		DeferCleanup(func(ctx SpecContext) {
			for _, object := range slices.Backward(objects) {
				if object.GetKind() != "CustomResourceDefinition" {
					Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, object))).To(Succeed())
				}
			}
			removeFinalizers(ctx)
			mustMake(ctx, "uninstall", "FORCE=1")
			mustKubectl(ctx, "delete", "namespace", namespace, "--timeout=2m")
		}, NodeTimeout(specTimeout))
		for _, object := range objects {
			manifest, err := yaml.Marshal(object.Object)
			Expect(err).NotTo(HaveOccurred())
			output, err := kubectlApply(ctx, namespace, string(manifest))
			Expect(err).NotTo(HaveOccurred(), "%s", output)
			Expect(output).NotTo(ContainSubstring("Warning"))
		}

		deployment := waitRolledOut(ctx, namespace)
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal(image))
		running := startManager(ctx, objects, deployment, nil)
		Eventually(func() error {
			_, err := kubectlApply(ctx, namespace, sample("appwrapper_pod.yaml"))
			return err
		}).WithContext(ctx).Should(Succeed())
		mustKubectl(ctx, "-n", namespace, "delete", "appwrapper", "sample-pod", "--timeout=2m")
		running.Stop(ctx)
	}, SpecTimeout(specTimeout))
})

// creationOrder returns the position of an object in the order of creation: CRDs, the objects that the Deployment needs, the Deployment.
func creationOrder(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "CustomResourceDefinition":
		return 0
	case "Deployment":
		return 2
	default:
		return 1
	}
}
