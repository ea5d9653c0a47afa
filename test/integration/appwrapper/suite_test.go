package appwrapper_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	startTimeout = 20 * time.Minute // the first run builds the control plane
	specTimeout  = 5 * time.Minute
	patience     = 2 * time.Minute
	often        = 100 * time.Millisecond
	// quiet is how long a spec observes that no request is sent; see [framework.Env.ExpectAtRest] for the check of the whole suite.
	quiet = time.Second
)

// All specs share one control plane and one manager with the shipped permissions; each spec has its own namespace. Without Kueue,
// the specs suspend and resume the AppWrappers.
var (
	env     *framework.Env
	account *operator.Installed
	manager *framework.Manager
)

func TestAppWrapper(t *testing.T) { framework.Run(t, "AppWrapper") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "appwrapper", cluster.Plain, framework.WithTypes(awv1beta2.AddToScheme), framework.WithOperator("config/default"))
	env.KeepNamespaces = true
	account = env.Installed
	for _, crd := range fakeCRDs() {
		Expect(env.Admin.Create(ctx, crd)).To(Succeed())
		env.WaitForCondition(ctx, crd, "Established", "True", "")
	}
	// Another suite covers the webhooks. The configurations stay because the manager maintains their CA bundle.
	for _, object := range account.Objects {
		if kind := object.GetKind(); kind == "MutatingWebhookConfiguration" || kind == "ValidatingWebhookConfiguration" {
			Expect(env.Admin.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"webhooks":[]}`)))).To(Succeed())
		}
	}
	manager = env.StartManager(ctx, framework.ManagerOptions{
		ServiceAccount: account.ServiceAccount, Args: []string{"--components=appwrapper", "--metrics-bind-address=127.0.0.1:0"},
	})
}, NodeTimeout(startTimeout))

var _ = AfterEach(func() { manager.ReportLog() })
