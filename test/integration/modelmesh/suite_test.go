package modelmesh_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

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
)

// All specs share one control plane with the APIs of KServe and one manager with exactly the shipped permissions; each spec has its own namespaces.
// No pod of a runtime runs, because no node matches its selector. Specs that change the settings of all namespaces, or stop the manager
// temporarily, are serial.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestModelMesh(t *testing.T) { framework.Run(t, "ModelMesh runtimes") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "modelmesh", cluster.Plain, framework.WithSets(cluster.KServe), framework.WithOperator("config/default"),
		framework.WithTypes(v1alpha1.AddToScheme, v1beta1.AddToScheme))
	env.DisableWebhooks(ctx)
	Expect(env.Admin.Create(ctx, framework.EtcdSecret(operatorNamespace))).To(Succeed())
	Eventually(func() error { return env.Admin.List(ctx, &v1alpha1.ServingRuntimeList{}) }).WithContext(ctx).WithTimeout(waitTimeout).
		Should(Succeed(), "the API is served shortly after its CRD is created")
	manager = env.StartManager(ctx, framework.ManagerOptions{
		Args: []string{"--components=modelmesh", "--metrics-bind-address=127.0.0.1:0"},
	})
}, NodeTimeout(framework.StartTimeout))
