package modelmesh_admission_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	startTimeout = 20 * time.Minute // the first run builds the control plane
	specTimeout  = 3 * time.Minute
	// patience is how long the manager may take to publish its CA.
	patience = time.Minute
	poll     = 100 * time.Millisecond

	operatorNamespace = "opendatahub"
)

// All specs share one control plane with the CRDs of KServe, and a manager with the shipped rights, whose webhook the API server calls. The
// manager is never elected, so only admission runs.
var (
	env     *framework.Env
	account *operator.Installed
	manager *framework.Manager
)

func TestModelMeshAdmission(t *testing.T) { framework.Run(t, "ModelMesh admission") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "modelmesh-admission", cluster.Bare, framework.WithSets(cluster.KServe), framework.WithTypes(v1alpha1.AddToScheme), framework.WithOperator("config/default"))
	account = env.Installed
	now := metav1.NowMicro()
	Expect(env.Admin.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "odh-platform-operator"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("another-manager"), LeaseDurationSeconds: new(int32(24 * 60 * 60)), AcquireTime: &now, RenewTime: &now,
		},
	})).To(Succeed())
	manager = env.StartManager(ctx, options("manager", "modelmesh"))
	waitForWebhooks(ctx)
}, NodeTimeout(startTimeout))

var _ = AfterEach(func() { manager.ReportLog() })
