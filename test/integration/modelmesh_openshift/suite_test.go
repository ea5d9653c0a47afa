package modelmesh_openshift_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 4 * time.Minute
	waitTimeout = 90 * time.Second
	// idlePeriod is how long the manager must send no request to count as idle.
	idlePeriod = time.Second
	// operatorNamespace is the namespace of the manager.
	operatorNamespace = "opendatahub"
	// monitoringNamespace is the namespace of the Prometheus of the platform.
	monitoringNamespace = "platform-monitoring"
)

// All specs share one control plane with the APIs of OpenShift and KServe and one manager with exactly the shipped permissions; each spec
// has its own namespaces. No node matches the node selector of createRuntime. Pods of a recorded runtime run on fake nodes, without a
// routing layer. No router and no certificate signer run. Specs that stop the manager are serial.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestModelMeshOnOpenShift(t *testing.T) { framework.Run(t, "ModelMesh on OpenShift") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "modelmesh-openshift", cluster.OpenShift, framework.WithSets(cluster.KServe), framework.WithOperator("config/default"),
		framework.WithTypes(v1alpha1.AddToScheme, v1beta1.AddToScheme))
	env.DisableWebhooks(ctx)
	Expect(env.Admin.Create(ctx, framework.EtcdSecret(operatorNamespace))).To(Succeed())
	Expect(env.Admin.Create(ctx, settingsConfigMap("scaleToZero: {gracePeriodSeconds: 1}"))).To(Succeed())
	for _, list := range []client.ObjectList{&v1alpha1.ServingRuntimeList{}, &v1beta1.InferenceServiceList{}, &v1alpha1.PredictorList{}} {
		Eventually(func() error { return env.Admin.List(ctx, list) }).WithContext(ctx).WithTimeout(waitTimeout).
			Should(Succeed(), "the API is served shortly after its CRD is created")
	}
	manager = env.StartManager(ctx, framework.ManagerOptions{
		Args: []string{"--components=modelmesh", "--metrics-bind-address=127.0.0.1:0"},
		Env:  []string{"MONITORING_NAMESPACE=" + monitoringNamespace},
	})
}, NodeTimeout(framework.StartTimeout))
