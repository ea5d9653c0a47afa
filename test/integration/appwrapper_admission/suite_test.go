package appwrapper_admission_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 4 * time.Minute
	// webhookTimeout bounds the waits for a manager that has started or whose ConfigMap has changed.
	webhookTimeout = 2 * time.Minute
	poll           = 100 * time.Millisecond

	operatorNamespace = "opendatahub"
	legacyConfigMap   = "appwrapper-operator-config"
	defaultQueue      = "system-default-queue"
)

// All specs share one control plane and a manager with the shipped permissions. As in a cluster, the API server calls the webhooks through
// their Service and trusts the published CA. All AppWrappers are suspended, so the manager creates no objects for them.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestAppWrapperAdmission(t *testing.T) { framework.Run(t, "AppWrapper admission") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "appwrapper-admission", cluster.Plain, framework.WithTypes(v1beta2.AddToScheme), framework.WithOperator("config/default"))
	env.KeepNamespaces = true
	env.InstallCRDs(ctx, framework.SampleCRD("kubeflow.org", "v1", "PyTorchJob"), framework.SampleCRD("jobset.x-k8s.io", "v1alpha2", "JobSet"),
		framework.SampleCRD("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"))
	Expect(env.Admin.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: legacyConfigMap},
		Data: map[string]string{"config.yaml": "appwrapper:\n  defaultQueueName: " + defaultQueue + "\n  shedulerName: misspelt\n" +
			"  enableKueueIntegrations: true\n  faultTolerance: {resetPause: 90000000000}\n"},
	})).To(Succeed())
	manager = startManager(ctx, "--components=appwrapper")
	waitForWebhooks(ctx)
}, NodeTimeout(framework.StartTimeout))
