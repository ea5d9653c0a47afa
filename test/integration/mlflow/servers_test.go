package mlflow_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("Several replicas of MLflow", func() {
	It("are set by the scale subresource, with a PodDisruptionBudget for more than one", func(ctx SpecContext) {
		create(ctx, secret("db", map[string]string{"uri": "postgresql://a"}))
		m := createReady(ctx, newMLflow(withoutVolumes))
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow"}}
		env.ExpectAbsent(ctx, budget) // for a single replica, it would block drains of its node
		since := transition(m)

		By("scaling up")
		scale := &autoscalingv1.Scale{}
		Expect(env.Admin.SubResource("scale").Get(ctx, m, scale)).To(Succeed())
		Expect(scale.Spec.Replicas).To(Equal(int32(1)))
		Expect(scale.Status.Replicas).To(Equal(int32(1)))
		Expect(scale.Status.Selector).To(Equal("app=mlflow"))
		scale.Spec.Replicas = 3
		Expect(env.Admin.SubResource("scale").Update(ctx, m, client.WithSubResourceBody(scale))).To(Succeed())
		env.WaitFor(ctx, budget, nil)
		Expect(budget.Spec.Selector.MatchLabels).To(Equal(map[string]string{"app": "mlflow"}))
		env.WaitFor(ctx, m, func(g Gomega) { g.Expect(m.Status.Replicas).To(Equal(int32(3))) })
		env.WaitForCondition(ctx, m, "Ready", metav1.ConditionTrue, "DeploymentReady")
		waitAvailable(ctx, m)
		env.ExpectIdle(manager.User, idlePeriod)

		By("scaling down")
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"replicas": 1}})
		env.WaitDeleted(ctx, budget)
		waitAvailable(ctx, m)
		Expect(transition(m)).To(Equal(since), "the Available condition had a transition, although a pod was available all the time")

		By("scaling to zero")
		Expect(env.Admin.SubResource("scale").Get(ctx, m, scale)).To(Succeed())
		scale.Spec.Replicas = 0
		Expect(env.Admin.SubResource("scale").Update(ctx, m, client.WithSubResourceBody(scale))).To(MatchError(ContainSubstring("should be greater than or equal to 1")))
	}, NodeTimeout(specTimeout))
})
