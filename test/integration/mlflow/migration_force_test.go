package mlflow_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

var _ = Describe("A forced migration", func() {
	It("runs once for each annotation, which is removed when the server is ready [mlflow-47] [D10]", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow(func(m *mlflowv1.MLflow) { m.Annotations = map[string]string{forceKey: "first"} }))
		Expect(m.Annotations).NotTo(HaveKey(forceKey))
		Expect(jobs(ctx)).To(HaveLen(1))

		By("forcing the same target again while the first Job exists")
		start := env.AuditPosition()
		setForceAnnotation(ctx, m, "first")
		Eventually(func() []string { return createdJobs(start) }).WithContext(ctx).Should(Equal([]string{firstJob}))
		waitMigrated(ctx, m)
		Expect(m.Annotations).NotTo(HaveKey(forceKey))
		Expect(createdJobs(start)).To(HaveLen(1))
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))
})
