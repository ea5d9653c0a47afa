package mlflow_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// setOutdated sets status.version to an older MLflow, and changes the image, while the manager is stopped.
func setOutdated(ctx context.Context, m *mlflowv1.MLflow, image string) {
	GinkgoHelper()
	manager.StopTemporarily(ctx)
	env.Patch(ctx, m, map[string]any{"status": map[string]any{"version": "3.10.1"}}, "status")
	env.Patch(ctx, m, imagePatch(image))
	manager.Restart(ctx)
}

// expectServing expects that the server runs as before the upgrade.
func expectServing(ctx context.Context, m *mlflowv1.MLflow) {
	GinkgoHelper()
	env.Get(ctx, m)
	Expect(framework.FindCondition(m.Status.Conditions, "Available").Status).To(Equal(metav1.ConditionTrue))
	d := deployment()
	env.Get(ctx, d)
	Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
	Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal(image))
}

var _ = Describe("The check before a migration", func() {
	It("pulls the image, and the server keeps running until the image is pulled", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow(withJobs))
		start := env.AuditPosition()
		setOutdated(ctx, m, unpullableImage)
		waitMigrationCondition(ctx, m, metav1.ConditionUnknown, "MigrationCheckFailed", `The server was not stopped, because check Job mlflow-migration-check does not succeed: image "testcluster.invalid/image-pull:x"`)
		expectServing(ctx, m)
		Expect(framework.FindCondition(m.Status.Conditions, "Progressing").Reason).To(Equal("MigrationCheckFailed"))
		check := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: checkJob}}
		env.Get(ctx, check)
		for _, v := range check.Spec.Template.Spec.Volumes {
			Expect(v.PersistentVolumeClaim).To(BeNil(), "the volume may be bound to the node of the server")
		}
		waiting := env.AuditPosition()
		Consistently(func() framework.Entries {
			return env.Since(waiting).ObjectWrites(manager.User)
		}).WithContext(ctx).WithTimeout(idlePeriod).Should(BeEmpty())
		Expect(createdJobs(start)).To(BeEmpty())

		env.Patch(ctx, m, imagePatch("quay.io/example/mlflow:v4"))
		waitMigrated(ctx, m)
		Expect(createdJobs(start)).To(Equal([]string{"mlflow-mg-3140-g3"}))
		for _, name := range []string{"mlflow-gc", "mlflow-trace-archival"} {
			job := cronJob(name)
			env.Get(ctx, job)
			Expect(job.Spec.Suspend).To(HaveValue(BeFalse()))
		}
	}, NodeTimeout(specTimeout))

	It("opens the database, and the server keeps running if the database is unusable", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow())
		start := env.AuditPosition()
		setOutdated(ctx, m, cluster.PodBehaviorRegistry+"exit-14:x")
		waitMigrationCondition(ctx, m, metav1.ConditionFalse, "MigrationCheckFailed", "Alembic could not resolve the schema revision graph: a newer MLflow has probably migrated the database")
		expectServing(ctx, m)
		Expect(framework.FindCondition(m.Status.Conditions, "Progressing").Status).To(Equal(metav1.ConditionFalse))
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)

		By("stopping the server manually, which needs no check")
		env.Patch(ctx, deployment(), map[string]any{"spec": map[string]any{"replicas": 0}})
		waitMigrationCondition(ctx, m, metav1.ConditionFalse, "MigrationFailed", "Alembic could not resolve")
		Expect(createdJobs(start)).To(HaveLen(1))
	}, NodeTimeout(specTimeout))
})
