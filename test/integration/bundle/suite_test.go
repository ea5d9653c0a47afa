// Package bundle_test installs the OLM bundle on a real control plane as OLM would, and runs the manager with what OLM gives it: the
// account and the rights of the CSV, the Deployment with the certificate that OLM mounts, and the webhook configurations and the
// conversion that OLM writes.
package bundle_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	// namespace is the one that the CSV suggests.
	namespace    = "opendatahub"
	startTimeout = 20 * time.Minute // the first run builds the control plane
	specTimeout  = 5 * time.Minute
)

// One control plane that serves neither the kinds of monitoring nor those of the console of OpenShift at first, and one installation for
// the whole life of an operator.
var (
	env     *framework.Env
	lcm     *olm
	manager *framework.Manager
)

func TestBundle(t *testing.T) { framework.Run(t, "The bundle, installed as OLM would") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "bundle", cluster.Bare, framework.WithSets(cluster.GatewayAPI, cluster.KubeRay),
		framework.WithTypes(mlflowv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme))
	ports, err := env.Instance.ReservePorts(ctx, 1)
	Expect(err).NotTo(HaveOccurred())
	lcm = newOLM(ports[0])
	lcm.install(ctx)
	manager = start(ctx, "manager")
	webhooksAnswer(ctx)
}, NodeTimeout(startTimeout))

var _ = AfterEach(func() { manager.ReportLog() })

// start runs the manager as the Deployment says, with further variables of a Subscription.
func start(ctx context.Context, name string, subscription ...corev1.EnvVar) *framework.Manager {
	GinkgoHelper()
	d := lcm.deployment(subscription...)
	args, variables := lcm.process(d)
	return env.StartManager(ctx, framework.ManagerOptions{
		Name: name, WebhookPort: int(lcm.port), Args: args, Env: variables,
		ServiceAccount: types.NamespacedName{Namespace: namespace, Name: d.Spec.Template.Spec.ServiceAccountName},
	})
}

// webhooksAnswer waits until the API server reaches the webhooks and trusts them.
func webhooksAnswer(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error { return env.Admin.Create(ctx, registry("probe"), dryRun) }).WithContext(ctx).Should(Succeed())
}
