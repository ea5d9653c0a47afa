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

const waitingFor = "Waiting for MLflowOperator to become ready before reconciling MLflow custom resources"

// lateStart bounds the start of a component after its API is served.
const lateStart = 5 * time.Second

func gatewayOf(r *unstructured.Unstructured) string {
	GinkgoHelper()
	parents, _, err := unstructured.NestedSlice(r.Object, "spec", "parentRefs")
	Expect(err).NotTo(HaveOccurred())
	Expect(parents).To(HaveLen(1))
	name, _, err := unstructured.NestedString(parents[0].(map[string]any), "name")
	Expect(err).NotTo(HaveOccurred())
	return name
}

var _ = Describe("An MLflow behind the gate of the platform", func() {
	It("waits for the MLflowOperator without polling, and starts when that is ready [mlflow-65] [mlflow-68]", func(ctx SpecContext) {
		m := create(ctx, server())
		for _, kind := range []string{"MLflowOperatorReady", "Available"} {
			env.WaitForCondition(ctx, m, kind, metav1.ConditionFalse, "MLflowOperatorMissing")
		}
		env.WaitForCondition(ctx, m, "Progressing", metav1.ConditionTrue, "MLflowOperatorMissing")
		gate, _ := conditions.Get(m.Status.Conditions, "MLflowOperatorReady")
		Expect(gate.Message).To(HavePrefix(waitingFor))
		Expect(gate.ObservedGeneration).To(Equal(m.Generation))
		waitIdle()
		env.ExpectIdle(manager.User, quiet)
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(deployment()), deployment())).NotTo(Succeed())

		// The MLflow is deleted first at the end of the spec, because it blocks the deletion of the MLflowOperator.
		module := mlflowOperator(func(m *platformv1alpha1.MLflowOperator) { m.Spec.SectionTitle = "" })
		Expect(env.Admin.Create(ctx, module)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { remove(ctx, m); remove(ctx, module) }, NodeTimeout(specTimeout))
		env.WaitForCondition(ctx, m, "MLflowOperatorReady", metav1.ConditionFalse, "ConfigPending")
		gate, _ = conditions.Get(m.Status.Conditions, "MLflowOperatorReady")
		Expect(gate.Message).To(Equal(waitingFor + ": Waiting for MLflowOperator spec fields before managing MLflow custom resources: spec.sectionTitle"))

		env.Patch(ctx, module, map[string]any{"spec": map[string]any{"sectionTitle": "Now"}})
		env.WaitForCondition(ctx, m, "MLflowOperatorReady", metav1.ConditionTrue, "Ready")
		waitAvailable(ctx, m)
		env.ExpectIdle(manager.User, quiet)
	}, NodeTimeout(specTimeout))

	It("is published with the Gateway and domain of the MLflowOperator, and follows their changes [mlflow-66] [mlflow-67]", func(ctx SpecContext) {
		module := create(ctx, mlflowOperator(withDomain, func(m *platformv1alpha1.MLflowOperator) { m.Spec.GatewayName = "first" }))
		m := create(ctx, server())
		waitAvailable(ctx, m)
		Expect(m.Status.URL).To(Equal("https://apps.example.com/mlflow"))
		r := route()
		env.Get(ctx, r)
		Expect(gatewayOf(r)).To(Equal("first"))
		link := &unstructured.Unstructured{}
		link.SetAPIVersion("console.openshift.io/v1")
		link.SetKind("ConsoleLink")
		link.SetName("mlflow")
		env.Get(ctx, link)
		section, _, _ := unstructured.NestedString(link.Object, "spec", "applicationMenu", "section")
		Expect(section).To(Equal("OpenShift Open Data Hub"))

		env.Patch(ctx, module, map[string]any{"spec": map[string]any{"gatewayName": "second", "sectionTitle": "Elsewhere", "gateway": nil}})
		env.WaitFor(ctx, r, func(g Gomega) { g.Expect(gatewayOf(r)).To(Equal("second")) })
		env.WaitFor(ctx, m, func(g Gomega) { g.Expect(m.Status.URL).To(Equal("https://env.example.com/mlflow")) })
		env.WaitFor(ctx, link, func(g Gomega) {
			section, _, _ := unstructured.NestedString(link.Object, "spec", "applicationMenu", "section")
			g.Expect(section).To(Equal("Elsewhere"))
		})
	}, NodeTimeout(specTimeout))

	It("blocks the deletion of the MLflowOperator while it exists, and is reconciled meanwhile [mlflow-64] [D32]", func(ctx SpecContext) {
		module := create(ctx, mlflowOperator())
		m := create(ctx, server())
		waitAvailable(ctx, m)
		Expect(env.Admin.Delete(ctx, module)).To(Succeed())
		waitReady(ctx, module, metav1.ConditionFalse, "MLflowInstancesPresent")
		Expect(condition(module, "Ready").Message).To(Equal("cannot delete MLflowOperator while 1 MLflow instance(s) still exist: delete them first"))
		Expect(module.Status.Phase).To(Equal(platformv1alpha1.PhaseProgressing))
		Expect(module.Finalizers).To(ContainElement(finalizer))
		env.WaitForCondition(ctx, m, "MLflowOperatorReady", metav1.ConditionFalse, "MLflowInstancesPresent")
		Expect(conditions.IsTrue(m.Status.Conditions, "Available")).To(BeTrue(), "the end of the server was not requested")
		waitIdle()
		env.ExpectIdle(manager.User, quiet)

		// Children that are deleted or changed while the deletion is blocked are restored.
		Expect(env.Admin.Delete(ctx, policy())).To(Succeed())
		env.WaitFor(ctx, policy(), nil)
		env.Patch(ctx, deployment(), map[string]any{"spec": map[string]any{"replicas": 3}})
		Eventually(func(g Gomega) {
			d := &appsv1.Deployment{}
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(deployment()), d)).To(Succeed())
			g.Expect(*d.Spec.Replicas).To(Equal(int32(1)))
		}).WithContext(ctx).Should(Succeed())

		remove(ctx, m)
		env.WaitDeleted(ctx, module)
	}, NodeTimeout(specTimeout))

	It("waits while the cluster does not serve MLflowOperator, and continues after it does [mlflow-4] [mlflow-65]", func(ctx SpecContext) {
		restore := deleteCRD(ctx, definition)
		m := create(ctx, server())
		env.WaitForCondition(ctx, m, "MLflowOperatorReady", metav1.ConditionFalse, "MLflowOperatorMissing")
		Eventually(func(g Gomega) {
			env.Get(ctx, m)
			gate, _ := conditions.Get(m.Status.Conditions, "MLflowOperatorReady")
			g.Expect(gate.Message).To(ContainSubstring("does not serve MLflowOperator"))
		}).WithContext(ctx).Should(Succeed())
		waitIdle()
		env.ExpectIdle(manager.User, quiet)

		start := env.AuditPosition()
		restore(ctx)
		module := mlflowOperator()
		Expect(env.Admin.Create(ctx, module)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { remove(ctx, m); remove(ctx, module) }, NodeTimeout(specTimeout))
		Eventually(func() framework.Entries {
			return env.Since(start).ByUser(manager.User).Of("mlflowoperators").Watches()
		}).WithContext(ctx).WithTimeout(lateStart).ShouldNot(BeEmpty())
		waitReady(ctx, module, metav1.ConditionTrue, "Ready")
		waitAvailable(ctx, m)

		// Remove the API again: the manager stays idle.
		remove(ctx, m)
		remove(ctx, module)
		deleteCRD(ctx, definition)
		waitIdle()
		env.ExpectIdle(manager.User, quiet)
	}, NodeTimeout(2*specTimeout))
})

var _ = Describe("The component platform", func() {
	It("never needs a permission that the shipped roles lack", func(ctx SpecContext) {
		start := env.AuditPosition()
		manager.Restart(ctx)
		create(ctx, config("2.30.0"))
		module := create(ctx, mlflowOperator(withDomain))
		m := create(ctx, server())
		waitAvailable(ctx, m)
		remove(ctx, m)
		remove(ctx, module)
		Expect(env.Since(start).ByUser(manager.User).Refused()).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("removes its finalizer when it is disabled, so that the deletion of the MLflowOperator finishes [D32]", func(ctx SpecContext) {
		module := create(ctx, mlflowOperator())
		m := create(ctx, server())
		waitAvailable(ctx, m)
		manager.StopTemporarily(ctx)
		other := startAnotherManager(ctx, framework.ManagerOptions{})
		env.WaitFor(ctx, m, func(g Gomega) {
			_, reported := conditions.Get(m.Status.Conditions, "MLflowOperatorReady")
			g.Expect(reported).To(BeFalse())
		})
		env.WaitIdle(other.User, quiet, specTimeout)
		env.Get(ctx, module)
		Expect(module.Finalizers).To(ContainElement(finalizer), "it is not touched until it is deleted")
		Expect(env.Admin.Delete(ctx, module)).To(Succeed())
		env.WaitDeleted(ctx, module)
		env.Get(ctx, m)
		Expect(conditions.IsTrue(m.Status.Conditions, "Available")).To(BeTrue())
		env.WaitIdle(other.User, quiet, specTimeout)
		env.ExpectIdle(other.User, quiet)
	}, NodeTimeout(specTimeout))

	It("is disabled unless it is enabled, in any of four ways [mlflow-66]", func(ctx SpecContext) {
		m := create(ctx, mlflowOperator())
		manager.StopTemporarily(ctx)
		for _, way := range []struct {
			options framework.ManagerOptions
			on      bool
		}{
			{framework.ManagerOptions{}, false},
			{framework.ManagerOptions{Args: []string{"--enable-platform"}}, true},
			{framework.ManagerOptions{Args: []string{"--components=*,platform"}}, true},
			{framework.ManagerOptions{Env: []string{"ENABLE_PLATFORM=true"}}, true},
			{framework.ManagerOptions{Env: []string{"ENABLE_PLATFORM=false", "ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER=true"}}, false},
		} {
			env.Patch(ctx, m, map[string]any{"status": nil}, "status")
			start := env.AuditPosition()
			other := startAnotherManager(ctx, way.options)
			if way.on {
				waitReady(ctx, m, metav1.ConditionTrue, "Ready")
			} else {
				env.WaitIdle(other.User, quiet, specTimeout)
				env.ExpectIdle(other.User, quiet)
				Expect(env.Since(start).ByUser(other.User).Of("mlflowoperators").Writes()).To(BeEmpty())
				env.Get(ctx, m)
				Expect(m.Status.Conditions).To(BeEmpty())
			}
			other.Stop(ctx)
		}
	}, NodeTimeout(2*specTimeout))
})
