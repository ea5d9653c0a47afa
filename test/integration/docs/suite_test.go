package docs_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const pageTimeout = 5 * time.Minute

// A shell runs the commands of each page in order, as administrator of a real control plane. A fake kubelet reports pods as
// Running; KubeRay and the programs in pods do not run.
var (
	env     *framework.Env
	manager *framework.Manager
	// kubectl is the path of the program, root is the path of the checkout.
	kubectl, root string
)

func TestDocs(t *testing.T) { framework.Run(t, "The commands of the documentation") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "docs", cluster.Plain, framework.WithSets(cluster.KServe), framework.WithOperator("config/default"))
	env.KeepNamespaces = true
	var err error
	kubectl, err = cluster.Kubectl(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	root, err = cluster.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	manager = startOperator(ctx, env)
	waitForWebhooks(ctx, env, "modelregistry_generated", "aihub_catalog", "appwrapper_job", "raycluster", "modelmesh_runtime_custom")
}, NodeTimeout(framework.StartTimeout))

func startOperator(ctx context.Context, e *framework.Env) *framework.Manager {
	GinkgoHelper()
	return e.StartManager(ctx, framework.ManagerOptions{
		ServiceAccount: e.Installed.ServiceAccount, WebhookPort: e.Installed.WebhookPort,
		Args: []string{"--metrics-bind-address=127.0.0.1:0"}, Env: []string{"MLFLOW_IMAGE=quay.io/example/mlflow:v3"},
	})
}

// waitForWebhooks waits until the API server can call the webhooks of the samples, because it loads the published CA with a delay.
func waitForWebhooks(ctx context.Context, e *framework.Env, samples ...string) {
	GinkgoHelper()
	for _, sample := range samples {
		objects, err := framework.ReadObjects(filepath.Join(root, "config", "samples", sample+".yaml"))
		Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			if object.GetKind() != "MLflow" {
				object.SetNamespace("default")
			}
			e.WaitAdmitted(ctx, object)
		}
	}
}
