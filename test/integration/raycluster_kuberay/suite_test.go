package raycluster_kuberay_test

import (
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
	specTimeout  = 5 * time.Minute
	waitTimeout  = 2 * time.Minute
	pollInterval = 200 * time.Millisecond
	// idlePeriod is how long the manager must send no request to count as idle.
	idlePeriod = time.Second
)

// settings are those of the CodeFlare operator on a KinD cluster, including keys that are ignored.
const settings = `
clientConnection: {qps: 50, burst: 100}
kuberay:
  rayDashboardOAuthEnabled: false
  mTLSEnabled: true
  ingressDomain: kind
  certGeneratorImage: quay.io/example/ray:2
mcad: {enabled: false}
instascale: {enabled: false, maxScaleoutAllowed: 5}
appwrapper:
  enabled: true
  Config: {enableKueueIntegrations: true}
`

// All specs share one control plane with the real KubeRay, the real Kueue and the manager, each with its own role. Each spec has its own
// namespace, and restores the settings that it changes.
var (
	env     *framework.Env
	manager *framework.Manager
	kueue   *cluster.Process
	kubeRay *cluster.Process
)

func TestRayClustersWithKubeRay(t *testing.T) { framework.Run(t, "RayClusters with KubeRay") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "raycluster-kuberay", cluster.Plain, framework.WithTypes(v1beta2.AddToScheme), framework.WithOperator("config/default"))
	Expect(env.Admin.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Installed.ServiceAccount.Namespace, Name: settingsName},
		Data:       map[string]string{"config.yaml": settings},
	})).To(Succeed())
	manager = env.StartManager(ctx, framework.ManagerOptions{
		Args: []string{"--components=raycluster,appwrapper"}, WebhookPort: env.Installed.WebhookPort,
	})
	var err error
	kueue, err = peers.StartKueue(ctx, env.Instance, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	kubeRay, err = peers.StartKubeRay(ctx, env.Instance, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	createQueueDefaults(ctx)
}, NodeTimeout(framework.StartTimeout))

var _ = AfterEach(func() {
	framework.ReportLog(kueue)
	framework.ReportLog(kubeRay)
})
