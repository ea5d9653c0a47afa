package appwrapper_kueue_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/peers"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 5 * time.Minute
	waitTimeout = 2 * time.Minute
	poll        = 200 * time.Millisecond
	// stableDuration is the time for which a spec expects that a state lasts, such as that of a suspended AppWrapper.
	stableDuration = 10 * time.Second
	// podsReadyTimeout is the time after which Kueue evicts a workload with pods that are not ready.
	podsReadyTimeout = time.Minute
	// evictionBackoffSeconds is the time in which Kueue does not admit an evicted workload again. In the meantime it admits others, which it
	// considers only some time after the quota is free.
	evictionBackoffSeconds = 10

	defaultQueue = "team-default"
)

// All specs share one control plane with the real Kueue and KubeRay, each with its own role, and Kueue with its webhooks. Each
// spec that creates AppWrappers has its own namespace and ClusterQueue.
var (
	env     *framework.Env
	manager *framework.Manager
	kueue   *cluster.Process
	kubeRay *cluster.Process
)

func TestAppWrapperWithKueue(t *testing.T) { framework.Run(t, "AppWrapper with Kueue") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "appwrapper-kueue", cluster.Plain, framework.WithTypes(v1beta2.AddToScheme), framework.WithOperator("test/integration/appwrapper_kueue/testdata/slack-queue"))
	env.InstallCRDs(ctx, framework.SampleCRD("kubeflow.org", "v1", "PyTorchJob")) // without a controller
	Expect(env.Admin.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Installed.ServiceAccount.Namespace, Name: "codeflare-operator-config"},
		Data:       map[string]string{"config.yaml": "appwrapper:\n  enabled: true\n  Config:\n    defaultQueueName: " + defaultQueue + "\n"},
	})).To(Succeed())
	configuration := filepath.Join(GinkgoT().TempDir(), "config.yaml")
	Expect(os.WriteFile(configuration, []byte("apiVersion: config.platform.opendatahub.io/v1alpha1\nkind: PlatformOperatorConfiguration\n"+
		"appwrapper: {slackQueueName: slack}\n"), 0o600)).To(Succeed())
	manager = env.StartManager(ctx, framework.ManagerOptions{
		Args: []string{"--components=appwrapper", "--config=" + configuration}, WebhookPort: env.Installed.WebhookPort,
	})
	var err error
	kueue, err = peers.StartKueue(ctx, env.Instance, GinkgoWriter, map[string]any{
		"waitForPodsReady": map[string]any{
			"timeout": podsReadyTimeout.String(), "blockAdmission": false, "requeuingStrategy": map[string]any{"backoffBaseSeconds": evictionBackoffSeconds, "backoffLimitCount": 5},
		},
		// The shipped frameworks whose APIs are served here: MultiKueue connects only to a cluster that serves all of them.
		"integrations": map[string]any{"frameworks": []string{
			"batch/job", "ray.io/rayjob", "ray.io/raycluster", "kubeflow.org/pytorchjob", "workload.codeflare.dev/appwrapper",
		}},
	})
	Expect(err).NotTo(HaveOccurred())
	kubeRay, err = peers.StartKubeRay(ctx, env.Instance, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	createQueueDefaults(ctx)
}, NodeTimeout(framework.StartTimeout))

var _ = AfterEach(func() {
	framework.ReportLog(kueue)
	framework.ReportLog(kubeRay)
})
