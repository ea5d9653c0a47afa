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
	Expect(env.KStatus(ctx, object)).To(Equal(want), "in the steady state")
}

// Package all_components tests the other kinds.
var _ = Describe("Tools based on kstatus", func() {
	It("derive Current and Failed for MLflowOperators", func(ctx SpecContext) {
		samples, err := framework.ReadObjects("../../../config/samples/platform_mlflowoperator.yaml")
		Expect(err).NotTo(HaveOccurred())
		m := create(ctx, samples[0])
		expectKstatus(ctx, m, "Current Ready")
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"gatewayName": nil}})
		expectKstatus(ctx, m, "Failed ConfigPending")
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"gatewayName": "g"}})
		expectKstatus(ctx, m, "Current Ready")
	}, NodeTimeout(specTimeout))

	It("derive Terminating for an MLflowOperator whose deletion an MLflow blocks", func(ctx SpecContext) {
		m := create(ctx, mlflowOperator())
		expectKstatus(ctx, m, "Current Ready")
		s := create(ctx, newMLflow())
		Expect(env.Admin.Delete(ctx, m)).To(Succeed())
		expectKstatus(ctx, m, "Terminating MLflowInstancesPresent")
		deleteAndWait(ctx, s)
		env.WaitDeleted(ctx, m)
	}, NodeTimeout(specTimeout))

	It("derive Current for AIHubs with and without a gateway", func(ctx SpecContext) {
		hub := createHub(ctx, newHub(absentNamespace(), withGateway))
		expectKstatus(ctx, hub, "Current AllDependentsHealthy")
		env.Patch(ctx, hub, map[string]any{"spec": map[string]any{"gateway": nil}})
		expectKstatus(ctx, hub, "Current AllDependentsHealthy") // Degraded is informational
		legacyDeployment := create(ctx, newLegacyDeployment(hub, "model-registry-operator-controller-manager"))
		env.WaitDeleted(ctx, legacyDeployment)
		create(ctx, newLegacyDeployment(hub, "model-registry-operator-controller-manager"))
		waitForHubCondition(ctx, hub, "Degraded", metav1.ConditionTrue, "EarlierOperatorRuns")
		expectKstatus(ctx, hub, "Current AllDependentsHealthy")
	}, NodeTimeout(specTimeout))

	It("do not derive Current for an AIHub whose Catalog cannot be created", func(ctx SpecContext) {
		restore := deleteCRD(ctx, catalogCRD)
		hub := create(ctx, newHub(absentNamespace()))
		expectKstatus(ctx, hub, "InProgress ChildDeploymentNotReady")
		restore(ctx)
		expectKstatus(ctx, hub, "Current AllDependentsHealthy")
	}, NodeTimeout(specTimeout))
})
