package mlflow_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

var _ = Describe("A forced migration", func() {
	It("runs once, and the annotation stays until the server is ready [mlflow-47] [D10]", func(ctx SpecContext) {
		m := ready(ctx, server(func(m *mlflowv1.MLflow) { m.Annotations = map[string]string{forceKey: "first"} }))
		Expect(m.Annotations).NotTo(HaveKey(forceKey))
		Expect(jobs(ctx)).To(HaveLen(1))

		By("again, beside the Job that is left of the first time")
		mark := env.Mark()
		force(ctx, m, "first")
		Eventually(func() []string { return made(mark) }).WithContext(ctx).Should(Equal([]string{firstJob}))
		migrated(ctx, m)
		Expect(m.Annotations).NotTo(HaveKey(forceKey))
		Expect(made(mark)).To(HaveLen(1))
		env.ExpectAtRest(manager.User, quiet)
	}, NodeTimeout(specTimeout))

	It("keeps its annotation while the server is not ready, and clears it then [mlflow-47]", func(ctx SpecContext) {
		m := ready(ctx, server())
		env.Patch(ctx, m, podAnnotations("not-ready"))
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "DeploymentNotReady")
		mark := env.Mark()
		force(ctx, m, "now")
		rolloutPending(ctx, m)
		env.Settle(manager.User, calm, specTimeout)
		env.Get(ctx, m)
		Expect(m.Annotations).To(HaveKeyWithValue(forceKey, "now"))
		Expect(conditionOf(m, "Migration").Reason).To(Equal("ForceMigrationRunning"))
		env.Patch(ctx, m, podAnnotations(nil))
		migrated(ctx, m)
		Expect(m.Annotations).NotTo(HaveKey(forceKey))
		Expect(made(mark)).To(HaveLen(1))
	}, NodeTimeout(specTimeout))

	It("starts over when it is asked for between the success of a Job and that of the server [mlflow-48] [mlflow-49] [D13]", func(ctx SpecContext) {
		m := server(unready)
		create(ctx, m)
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "DeploymentNotReady")
		first := jobs(ctx)[0]
		mark := env.Mark()
		force(ctx, m, "")
		Eventually(func() []string { return made(mark) }).WithContext(ctx).Should(Equal([]string{firstJob}))
		rolloutPending(ctx, m)
		env.Patch(ctx, m, podAnnotations(nil))
		migrated(ctx, m)
		Expect(made(mark)).To(HaveLen(1))
		Expect(jobs(ctx)).To(HaveLen(1))
		Expect(jobs(ctx)[0].UID).NotTo(Equal(first.UID))
		Eventually(func(g Gomega) {
			for _, pod := range jobPods(ctx) {
				g.Expect(metav1.GetControllerOf(&pod).UID).To(Equal(jobs(ctx)[0].UID), "no pod is left of the first Job")
			}
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(specTimeout))

	It("that fails for good consumes the annotation, which asks anew when it is added again [D10]", func(ctx SpecContext) {
		m := ready(ctx, server())
		env.Patch(ctx, m, imagePatch(endsWith11))
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "DeploymentNotReady")
		for range 2 {
			mark := env.Mark()
			force(ctx, m, "same")
			Eventually(func() []string { return made(mark) }).WithContext(ctx).Should(HaveLen(1))
			// The condition may still be the one of the first round; the annotation goes when this one has failed.
			env.WaitFor(ctx, m, func(g Gomega) { g.Expect(m.Annotations).NotTo(HaveKey(forceKey)) })
			says(ctx, m, metav1.ConditionFalse, "MigrationFailed", "operator-managed migration only supports SQL backend store URIs")
			env.Settle(manager.User, calm, specTimeout)
			env.Get(ctx, m)
			Expect(m.Annotations).NotTo(HaveKey(forceKey))
			Expect(made(mark)).To(HaveLen(1))
			Expect(replicas(ctx)).To(BeZero())
		}
	}, NodeTimeout(specTimeout))

	It("does not lose a value that comes while it is being cleared [D10]", func(ctx SpecContext) {
		m := ready(ctx, server())
		env.Patch(ctx, m, imagePatch(neverEnds))
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "DeploymentNotReady")
		mark := env.Mark()
		force(ctx, m, "one")
		Eventually(func() []string { return made(mark) }).WithContext(ctx).Should(HaveLen(1))
		force(ctx, m, "two")
		name := made(mark)[0]
		finish(ctx, name, 0)
		Eventually(func() []string { return made(mark) }).WithContext(ctx).Should(Equal([]string{name, name}))
		finish(ctx, name, 0)
		rolloutPending(ctx, m)
		env.Patch(ctx, m, imagePatch(image))
		migrated(ctx, m)
		Expect(m.Annotations).NotTo(HaveKey(forceKey))
		Expect(made(mark)).To(HaveLen(2))
	}, NodeTimeout(specTimeout))
})
