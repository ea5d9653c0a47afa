//go:build e2e

package e2e_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/docs"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

// The specs run the unchanged commands of documentation pages with real pods; test/integration/docs runs them with fake
// pods. The pages of AppWrappers and RayClusters require the operators of "Queued workloads".
var _ = Describe("A documentation page", func() {
	It("for MLflow has commands that work", func(ctx SpecContext) {
		Expect(images.MLflow(ctx, store, checkout, images.MLflowImage)).To(Succeed())
		DeferCleanup(removeMLflow)
		runPage(ctx, "docs/components/mlflow.md")
	}, SpecTimeout(specTimeout))

	It("for getting started ends with a server that responds", func(ctx SpecContext) {
		Expect(images.MLflow(ctx, store, checkout, images.MLflowImage)).To(Succeed())
		DeferCleanup(removeMLflow)
		runPage(ctx, "docs/getting-started.md", "server")
	}, SpecTimeout(specTimeout))

	It("for registries has commands that work", func(ctx SpecContext) { runPage(ctx, "docs/components/modelregistry.md") }, SpecTimeout(specTimeout))

	It("for catalogs has commands that work", func(ctx SpecContext) { runPage(ctx, "docs/components/modelcatalog.md") }, SpecTimeout(specTimeout))
})

func describeQueuedPages() {
	It("for AppWrappers has commands that work", func(ctx SpecContext) { runPage(ctx, "docs/components/appwrapper.md") }, SpecTimeout(specTimeout))

	It("for RayClusters has commands that work", func(ctx SpecContext) {
		Expect(images.Ray(ctx, store)).To(Succeed())
		runPage(ctx, "docs/components/raycluster.md", "server")
	}, SpecTimeout(specTimeout))
}

// runPage runs the commands of a page in order, including those with one of the conditions.
func runPage(ctx context.Context, page string, conditions ...string) {
	GinkgoHelper()
	reader := &docs.Reader{
		Page: page, Root: checkout, Folder: GinkgoT().TempDir(), Kubectl: kubectlPath, Kubeconfig: env.KubeconfigPath, Satisfied: conditions,
	}
	DeferCleanup(func(ctx SpecContext) { reader.Undo(ctx) }, NodeTimeout(podTimeout))
	reader.Read(ctx)
}
