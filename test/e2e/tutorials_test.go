//go:build e2e

package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/docs"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

// tutorialTimeout limits one command of a tutorial, which may wait for images, pods and training.
const tutorialTimeout = 16 * time.Minute

// The specs run the commands of a tutorial, except those that install Python packages from PyPI, and compare their output with the output
// on the page. The tutorials with Kueue require the operators of "Queued workloads".
var _ = Describe("A tutorial", func() {
	It("for MLflow ends with a prediction", func(ctx SpecContext) {
		Expect(images.MLflow(ctx, store, checkout, images.MLflowImage)).To(Succeed())
		DeferCleanup(removeMLflow)
		python, err := installPython(ctx, "operands", "python", "test/operands/requirements.txt").
			Extend(ctx, "mlflow-3.14.0", "mlflow==3.14.0")
		Expect(err).NotTo(HaveOccurred())
		followTutorial(ctx, "mlflow.md", python)
	}, SpecTimeout(specTimeout))

	It("for Model Registry ends with a version that is found", func(ctx SpecContext) {
		followTutorial(ctx, "modelregistry.md", installPython(ctx, "clients", "model-registry-0.3.14", "test/clients/requirements/model-registry-0.3.14.txt"))
	}, SpecTimeout(specTimeout))

	It("for Model Catalog ends with a model that is found", func(ctx SpecContext) { followTutorialOutsideCheckout(ctx, "modelcatalog.md", nil) }, SpecTimeout(specTimeout))

	It("for ModelMesh ends with predictions over REST and gRPC", func(ctx SpecContext) {
		buildModelMeshImages(ctx)
		followTutorial(ctx, "modelmesh.md", installPython(ctx, "tutorials", "modelmesh", "test/e2e/testdata/python/modelmesh.txt"), "long")
	}, SpecTimeout(specTimeout))
})

func describeQueuedTutorials() {
	It("for AppWrappers ends with a workload that has waited", func(ctx SpecContext) { followTutorial(ctx, "appwrapper.md", nil) }, SpecTimeout(specTimeout))

	It("for Ray clusters ends with tasks over TLS from the CodeFlare SDK", func(ctx SpecContext) {
		Expect(images.Ray(ctx, store)).To(Succeed())
		followTutorialOutsideCheckout(ctx, "raycluster.md", installPython(ctx, "tutorials", "raycluster", "test/e2e/testdata/python/raycluster.txt", images.RayPython))
	}, SpecTimeout(specTimeout))

	It("for the whole journey ends with a prediction from the model that Ray trained", func(ctx SpecContext) {
		Expect(images.MLflow(ctx, store, checkout, images.MLflowImage)).To(Succeed())
		Expect(images.Ray(ctx, store)).To(Succeed())
		buildModelMeshImages(ctx)
		DeferCleanup(removeMLflow)
		followTutorial(ctx, "journey.md", installPython(ctx, "tutorials", "journey", "test/e2e/testdata/python/journey.txt"), "long")
	}, SpecTimeout(specTimeout))
}

// installPython creates a Python environment, unless it exists, with one of the versions and the packages of a file of the checkout.
func installPython(ctx context.Context, folder, name, requirements string, versions ...string) *machine.Python {
	GinkgoHelper()
	list, err := os.ReadFile(filepath.Join(checkout, filepath.FromSlash(requirements)))
	Expect(err).NotTo(HaveOccurred())
	python, err := machine.InstallPython(ctx, folder, name, list, versions...)
	Expect(err).NotTo(HaveOccurred())
	return python
}

// newTutorialReader returns the reader of a tutorial, with a Python environment unless python is nil.
func newTutorialReader(page string, python *machine.Python) *docs.Reader {
	GinkgoHelper()
	path := filepath.Dir(kubectlPath) + ":" + os.Getenv("PATH")
	if python != nil {
		path = python.Bin + ":" + path
	}
	reader := &docs.Reader{
		Page: "docs/tutorials/" + page, Root: checkout, Folder: GinkgoT().TempDir(), Kubectl: kubectlPath, Kubeconfig: env.KubeconfigPath,
		Timeout: tutorialTimeout, Env: []string{"PATH=" + path, "PYTHONDONTWRITEBYTECODE=1", "GIT_PYTHON_REFRESH=quiet"},
	}
	DeferCleanup(func(ctx SpecContext) { reader.Undo(ctx) }, NodeTimeout(podTimeout))
	return reader
}

// followTutorial runs the commands of a tutorial in the checkout, including those with one of the conditions.
func followTutorial(ctx context.Context, page string, python *machine.Python, conditions ...string) {
	GinkgoHelper()
	reader := newTutorialReader(page, python)
	reader.Satisfied = conditions
	reader.Read(ctx)
}

// followTutorialOutsideCheckout runs the commands of a tutorial outside the checkout, in the folder of its files.
func followTutorialOutsideCheckout(ctx context.Context, page string, python *machine.Python) {
	GinkgoHelper()
	reader := newTutorialReader(page, python)
	reader.OutsideCheckout = true
	reader.Read(ctx)
}
