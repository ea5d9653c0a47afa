package platform_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const waitingMessage = "Waiting for MLflowOperator to become ready before reconciling MLflow custom resources"

// componentStartTimeout limits the start of a component after its API is served.
const componentStartTimeout = 5 * time.Second

func gatewayOf(r *unstructured.Unstructured) string {
	GinkgoHelper()
	parents, _, err := unstructured.NestedSlice(r.Object, "spec", "parentRefs")
	Expect(err).NotTo(HaveOccurred())
	Expect(parents).To(HaveLen(1))
	name, _, err := unstructured.NestedString(parents[0].(map[string]any), "name")
	Expect(err).NotTo(HaveOccurred())
	return name
}

var _ = Describe("An MLflow on a cluster with the platform operator", func() {
	It("waits for the MLflowOperator without polling, and starts when it is ready [mlflow-65] [mlflow-68]", func(ctx SpecContext) {
		m := create(ctx, newMLflow())
		for _, conditionType := range []string{"MLflowOperatorReady", "Available"} {
			env.WaitForCondition(ctx, m, conditionType, metav1.ConditionFalse, "MLflowOperatorMissing")
		}
		env.WaitForCondition(ctx, m, "Progressing", metav1.ConditionTrue, "MLflowOperatorMissing")
		gate, _ := conditions.Get(m.Status.Conditions, "MLflowOperatorReady")
		Expect(gate.Message).To(HavePrefix(waitingMessage))
		Expect(gate.ObservedGeneration).To(Equal(m.Generation))
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(mlflowDeployment()), mlflowDeployment())).NotTo(Succeed())

		// After the spec, the MLflow is deleted first, because it blocks the deletion of the MLflowOperator.
		module := mlflowOperator(func(m *platformv1alpha1.MLflowOperator) { m.Spec.SectionTitle = "" })
		Expect(env.Admin.Create(ctx, module)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { deleteAndWait(ctx, m); deleteAndWait(ctx, module) }, NodeTimeout(specTimeout))
		env.WaitForCondition(ctx, m, "MLflowOperatorReady", metav1.ConditionFalse, "ConfigPending")
		gate, _ = conditions.Get(m.Status.Conditions, "MLflowOperatorReady")
		Expect(gate.Message).To(Equal(waitingMessage + ": Waiting for MLflowOperator spec fields before managing MLflow custom resources: spec.sectionTitle"))

		env.Patch(ctx, module, map[string]any{"spec": map[string]any{"sectionTitle": "Now"}})
		env.WaitForCondition(ctx, m, "MLflowOperatorReady", metav1.ConditionTrue, "Ready")
		waitAvailable(ctx, m)
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("is published with the Gateway and domain of the MLflowOperator, and again when they change [mlflow-66] [mlflow-67]", func(ctx SpecContext) {
		module := create(ctx, mlflowOperator(withDomain, func(m *platformv1alpha1.MLflowOperator) { m.Spec.GatewayName = "first" }))
		m := create(ctx, newMLflow())
		waitAvailable(ctx, m)
		Expect(m.Status.URL).To(Equal("https://apps.example.com/mlflow"))
		r := httpRoute()
		env.Get(ctx, r)
		Expect(gatewayOf(r)).To(Equal("first"))
		link := &unstructured.Unstructured{}
		link.SetAPIVersion("console.openshift.io/v1")
		link.SetKind("ConsoleLink")
		link.SetName("mlflow")
		env.Get(ctx, link)
		section, _, _ := unstructured.NestedString(link.Object, "spec", "applicationMenu", "section")
		Expect(section).To(Equal("OpenShift Open Data Hub"))

		env.Patch(ctx, module, map[string]any{"spec": map[string]any{"gatewayName": "second", "sectionTitle": "Other", "gateway": nil}})
		env.WaitFor(ctx, r, func(g Gomega) { g.Expect(gatewayOf(r)).To(Equal("second")) })
		env.WaitFor(ctx, m, func(g Gomega) { g.Expect(m.Status.URL).To(Equal("https://env.example.com/mlflow")) })
		env.WaitFor(ctx, link, func(g Gomega) {
			section, _, _ := unstructured.NestedString(link.Object, "spec", "applicationMenu", "section")
			g.Expect(section).To(Equal("Other"))
		})
	}, NodeTimeout(specTimeout))

	It("blocks the deletion of the MLflowOperator while it exists, and is still reconciled [mlflow-64] [D32]", func(ctx SpecContext) {
		module := create(ctx, mlflowOperator())
		m := create(ctx, newMLflow())
		waitAvailable(ctx, m)
		Expect(env.Admin.Delete(ctx, module)).To(Succeed())
		waitReady(ctx, module, metav1.ConditionFalse, "MLflowInstancesPresent")
		Expect(findCondition(module, "Ready").Message).To(Equal("cannot delete MLflowOperator while 1 MLflow instance(s) still exist: delete them first"))
		Expect(module.Status.Phase).To(Equal(platformv1alpha1.PhaseProgressing))
		Expect(module.Finalizers).To(ContainElement(finalizer))
		env.WaitForCondition(ctx, m, "MLflowOperatorReady", metav1.ConditionFalse, "MLflowInstancesPresent")
		Expect(conditions.IsTrue(m.Status.Conditions, "Available")).To(BeTrue(), "the MLflow stays available")
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)

		// Child objects that are deleted or changed while the deletion is blocked are restored.
		Expect(env.Admin.Delete(ctx, networkPolicy())).To(Succeed())
		env.WaitFor(ctx, networkPolicy(), nil)
		env.Patch(ctx, mlflowDeployment(), map[string]any{"spec": map[string]any{"replicas": 3}})
		Eventually(func(g Gomega) {
			d := &appsv1.Deployment{}
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(mlflowDeployment()), d)).To(Succeed())
			g.Expect(*d.Spec.Replicas).To(Equal(int32(1)))
		}).WithContext(ctx).Should(Succeed())

		deleteAndWait(ctx, m)
		env.WaitDeleted(ctx, module)
	}, NodeTimeout(specTimeout))

	It("waits while the cluster does not serve MLflowOperator, and continues after it does [mlflow-4] [mlflow-65]", func(ctx SpecContext) {
		restore := deleteCRD(ctx, mlflowOperatorCRD)
		m := create(ctx, newMLflow())
		env.WaitForCondition(ctx, m, "MLflowOperatorReady", metav1.ConditionFalse, "MLflowOperatorMissing")
		Eventually(func(g Gomega) {
			env.Get(ctx, m)
			gate, _ := conditions.Get(m.Status.Conditions, "MLflowOperatorReady")
			g.Expect(gate.Message).To(ContainSubstring("does not serve MLflowOperator"))
		}).WithContext(ctx).Should(Succeed())
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)

		start := env.AuditPosition()
		restore(ctx)
		module := mlflowOperator()
		Expect(env.Admin.Create(ctx, module)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { deleteAndWait(ctx, m); deleteAndWait(ctx, module) }, NodeTimeout(specTimeout))
		Eventually(func() framework.Entries {
			return env.Since(start).ByUser(manager.User).ForResource("mlflowoperators").Watches()
		}).WithContext(ctx).WithTimeout(componentStartTimeout).ShouldNot(BeEmpty())
		waitReady(ctx, module, metav1.ConditionTrue, "Ready")
		waitAvailable(ctx, m)

		// The manager stays idle when the API is removed again.
		deleteAndWait(ctx, m)
		deleteAndWait(ctx, module)
		deleteCRD(ctx, mlflowOperatorCRD)
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(2*specTimeout))
})

var _ = Describe("The component platform", func() {
	It("needs only permissions of the shipped roles", func(ctx SpecContext) {
		start := env.AuditPosition()
		manager.Restart(ctx)
		create(ctx, platformVersionConfigMap("2.30.0"))
		module := create(ctx, mlflowOperator(withDomain))
		m := create(ctx, newMLflow())
		waitAvailable(ctx, m)
		deleteAndWait(ctx, m)
		deleteAndWait(ctx, module)
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("does not block the deletion of an MLflowOperator while it is disabled [D32]", func(ctx SpecContext) {
		module := create(ctx, mlflowOperator())
		m := create(ctx, newMLflow())
		waitAvailable(ctx, m)
		manager.StopTemporarily(ctx)
		withoutPlatform := startAnotherManager(ctx, framework.ManagerOptions{})
		env.WaitFor(ctx, m, func(g Gomega) {
			_, reported := conditions.Get(m.Status.Conditions, "MLflowOperatorReady")
			g.Expect(reported).To(BeFalse())
		})
		env.WaitIdle(withoutPlatform.User, idlePeriod, specTimeout)
		env.Get(ctx, module)
		Expect(module.Finalizers).To(ContainElement(finalizer), "the finalizer is removed only when the object is deleted")
		Expect(env.Admin.Delete(ctx, module)).To(Succeed())
		env.WaitDeleted(ctx, module)
		env.Get(ctx, m)
		Expect(conditions.IsTrue(m.Status.Conditions, "Available")).To(BeTrue())
		env.WaitIdle(withoutPlatform.User, idlePeriod, specTimeout)
		env.ExpectIdle(withoutPlatform.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("is disabled by default, and enabled by a flag, the list of components or a variable [mlflow-66]", func(ctx SpecContext) {
		module := create(ctx, mlflowOperator())
		manager.StopTemporarily(ctx)
		for _, test := range []struct {
			options framework.ManagerOptions
			enabled bool
		}{
			{framework.ManagerOptions{}, false},
			{framework.ManagerOptions{Args: []string{"--enable-platform"}}, true},
			{framework.ManagerOptions{Args: []string{"--components=*,platform"}}, true},
			{framework.ManagerOptions{Env: []string{"ENABLE_PLATFORM=true"}}, true},
			{framework.ManagerOptions{Env: []string{"ENABLE_PLATFORM=false", "ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER=true"}}, false},
		} {
			env.Patch(ctx, module, map[string]any{"status": nil}, "status")
			start := env.AuditPosition()
			testedManager := startAnotherManager(ctx, test.options)
			if test.enabled {
				waitReady(ctx, module, metav1.ConditionTrue, "Ready")
			} else {
				env.WaitIdle(testedManager.User, idlePeriod, specTimeout)
				env.ExpectIdle(testedManager.User, idlePeriod)
				Expect(env.Since(start).ByUser(testedManager.User).ForResource("mlflowoperators").Writes()).To(BeEmpty())
				env.Get(ctx, module)
				Expect(module.Status.Conditions).To(BeEmpty())
			}
			testedManager.Stop(ctx)
		}
	}, NodeTimeout(2*specTimeout))
})
