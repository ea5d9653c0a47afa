package platform_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// expectKstatus waits until an object has a kstatus, and checks that it is unchanged in the steady state.
func expectKstatus(ctx context.Context, object client.Object, want string) {
	GinkgoHelper()
	Eventually(env.KStatus).WithContext(ctx).WithArguments(object).WithTimeout(specTimeout / 2).Should(Equal(want))
	waitIdle()
	Expect(env.KStatus(ctx, object)).To(Equal(want), "at rest")
}

// The suite together tests the other kinds.
var _ = Describe("Tools based on kstatus", func() {
	It("derive Current, InProgress and Failed for MLflowOperators", func(ctx SpecContext) {
		samples, err := framework.ReadObjects("../../../config/samples/platform_mlflowoperator.yaml")
		Expect(err).NotTo(HaveOccurred())
		m := create(ctx, samples[0])
		expectKstatus(ctx, m, "Current Ready")
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"gatewayName": nil}})
		expectKstatus(ctx, m, "Failed ConfigPending")
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"gatewayName": "g"}})
		expectKstatus(ctx, m, "Current Ready")
	}, NodeTimeout(specTimeout))

	It("derive Terminating for an MLflowOperator that MLflow objects block", func(ctx SpecContext) {
		m := create(ctx, mlflowOperator())
		expectKstatus(ctx, m, "Current Ready")
		s := create(ctx, server())
		Expect(env.Admin.Delete(ctx, m)).To(Succeed())
		expectKstatus(ctx, m, "Terminating MLflowInstancesPresent")
		remove(ctx, s)
		env.WaitDeleted(ctx, m)
	}, NodeTimeout(specTimeout))

	It("derive Current for AIHubs with and without a gateway", func(ctx SpecContext) {
		a := createHub(ctx, hub(absentNamespace(), published))
		expectKstatus(ctx, a, "Current AllDependentsHealthy")
		env.Patch(ctx, a, map[string]any{"spec": map[string]any{"gateway": nil}})
		expectKstatus(ctx, a, "Current AllDependentsHealthy") // Degraded is informational
		blocked := create(ctx, childOf(a, "model-registry-operator-controller-manager"))
		env.WaitDeleted(ctx, blocked)
		create(ctx, childOf(a, "model-registry-operator-controller-manager"))
		waitHub(ctx, a, "Degraded", metav1.ConditionTrue, "EarlierOperatorRuns")
		expectKstatus(ctx, a, "Current AllDependentsHealthy")
	}, NodeTimeout(specTimeout))

	It("do not derive Current for an AIHub whose Catalog cannot be created", func(ctx SpecContext) {
		restore := deleteCRD(ctx, catalogsDefinition)
		a := create(ctx, hub(absentNamespace()))
		expectKstatus(ctx, a, "InProgress ChildDeploymentNotReady")
		restore(ctx)
		expectKstatus(ctx, a, "Current AllDependentsHealthy")
	}, NodeTimeout(specTimeout))
})
