package install_test

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("The page about the way", func() {
	It("from mlflow-operator says what works", func(ctx SpecContext) {
		o := arrange(ctx, "mlflow-operator.yaml")
		minimal := framework.Recording("../takeover/testdata/minimal.yaml", // with what stands in params.env of both
			"quay.io/example/mlflow:v3", "quay.io/opendatahub/mlflow:odh-stable",
			"https://mlflow.example.com", "https://www.gateway-hostname-placeholder-with-mlflow-path.com")
		create(ctx, minimal[0])
		server := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}}
		env.Get(ctx, server)
		server.SetGroupVersionKind(mlflowv1.GroupVersion.WithKind("MLflow"))
		o.left(ctx, server, append(framework.Recording("../takeover/testdata/common.yaml"), minimal[1:]...)...)
		server.Status.Version = "3.14.0"
		server.Status.Conditions = []metav1.Condition{
			framework.Condition("Available", metav1.ConditionTrue, "DeploymentReady"),
			framework.Condition("Migration", metav1.ConditionTrue, "MigrationSucceeded"),
		}
		Expect(env.Admin.Status().Update(ctx, server)).To(Succeed())

		r := o.read(ctx, "mlflow-operator.md")

		Expect(os.ReadFile(r.Saved["mlflow-before.yaml"])).To(ContainSubstring("sqlite:////mlflow/mlflow.db"))
		o.taken(ctx, "mlflow", "Deployment mlflow", "spec", "template")
		o.taken(ctx, "mlflow", "Service mlflow", "spec", "clusterIP")
		for _, name := range []string{"ServiceAccount mlflow-sa", "NetworkPolicy mlflow", "HTTPRoute mlflow", "ClusterRole mlflow", "ClusterRoleBinding mlflow"} {
			o.taken(ctx, "mlflow", name)
		}
		o.taken(ctx, "mlflow", "PersistentVolumeClaim mlflow-pvc", "spec")
		Expect(o.now(ctx, "PersistentVolumeClaim mlflow-pvc").GetOwnerReferences()).To(BeEmpty())
		env.WaitForCondition(ctx, server, "Available", metav1.ConditionTrue, "DeploymentReady")
		for _, object := range framework.Recording("testdata/mlflow-operator.yaml") {
			if object.GetName() != "mlflow-operator-mlflow-view" {
				env.WaitGone(ctx, object)
			}
		}
		Expect(live(ctx, named("ClusterRole", "mlflow-operator-mlflow-view", o.objects))).NotTo(BeNil(), "it is ours")

		By("deleting the server, which leaves its data")
		Expect(env.Admin.Delete(ctx, server)).To(Succeed())
		env.WaitGone(ctx, o.before["Deployment mlflow"])
		o.now(ctx, "PersistentVolumeClaim mlflow-pvc")
	}, SpecTimeout(specTimeout))
})
