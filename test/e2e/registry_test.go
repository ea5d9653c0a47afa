//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
	"github.com/odh-platform/odh-platform-operator/test/operands/programs"
)

//go:embed testdata/writer.yaml
var writer string

var _ = Describe("The generated database of a ModelRegistry", func() {
	// The pod that takes over starts while the old server still has a client that never leaves, on the same volume.
	It("keeps every acknowledged write when its pod is deleted", func(ctx SpecContext) {
		namespace := restrictedNamespace(ctx, "registry")
		checkout, err := cluster.RepositoryRoot()
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "-n", namespace, "apply", "-f", filepath.Join(checkout, "config", "samples", "modelregistry_generated.yaml"))
		inNamespace := func(args ...string) []string { return append([]string{"-n", namespace}, args...) }
		Eventually(ctx, func(ctx context.Context) error {
			_, err := tryKubectl(ctx, "", inNamespace("get", "deployment", "modelregistry-sample", "modelregistry-sample-postgres")...)
			return err
		}).Should(Succeed())
		kubectl(ctx, inNamespace("rollout", "status", "deployment/modelregistry-sample-postgres", fmt.Sprint("--timeout=", podTimeout))...)

		labels := kubectl(ctx, inNamespace("get", "deployment", "modelregistry-sample", "-o", "jsonpath={.spec.template.metadata.labels}")...)
		apply(ctx, namespace, strings.ReplaceAll(writer, "${LABELS}", labels))
		acknowledged := func(ctx context.Context) ([]string, error) {
			output, err := tryKubectl(ctx, "", inNamespace("logs", "writer")...)
			return strings.Fields(output), err
		}
		Eventually(ctx, acknowledged, podTimeout).ShouldNot(BeEmpty())

		const selector = "--selector=app.kubernetes.io/name=modelregistry-sample-postgres"
		old := kubectl(ctx, inNamespace("get", "pod", selector, "-o", "name")...)
		kubectl(ctx, inNamespace("delete", "--wait=false", old)...)
		kubectl(ctx, inNamespace("wait", "--for=delete", old, fmt.Sprint("--timeout=", podTimeout))...)
		kubectl(ctx, inNamespace("wait", "--for=condition=Ready", "pod", selector, fmt.Sprint("--timeout=", podTimeout))...)
		before, err := acknowledged(ctx)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(ctx context.Context) (int, error) {
			numbers, err := acknowledged(ctx)
			return len(numbers), err
		}, podTimeout).Should(BeNumerically(">", len(before)+5), "the writer gets no further")

		all, err := acknowledged(ctx)
		Expect(err).NotTo(HaveOccurred())
		stored := kubectl(ctx, inNamespace("exec", "deployment/modelregistry-sample-postgres", "--", "sh", "-c",
			`psql -h /run/postgresql -U "$POSTGRESQL_USER" -d "$POSTGRESQL_DATABASE" -Atc 'SELECT number FROM writes'`)...)
		Expect(strings.Fields(stored)).To(ContainElements(all))
	}, SpecTimeout(specTimeout))
})

// packRegistry makes the images of Model Registry and of the proxy before it.
func packRegistry(ctx context.Context, store images.Store) {
	GinkgoHelper()
	server, err := programs.ModelRegistry(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(images.Program(store, server, "/model-registry", images.ModelRegistryImage)).To(Succeed())
	proxy, err := programs.KubeRBACProxy(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(images.Program(store, proxy, "/kube-rbac-proxy", images.KubeRBACProxyImage)).To(Succeed())
}
