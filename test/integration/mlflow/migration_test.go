package mlflow_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("The database of a new MLflow", func() {
	It("is migrated before the server starts [mlflow-46] [mlflow-41]", func(ctx SpecContext) {
		start := env.AuditPosition()
		m := newMLflow(withImage(neverReadyImage), withJobs)
		create(ctx, m)
		waitMigrationCondition(ctx, m, metav1.ConditionUnknown, "MigrationRunning", "status.version is empty during bootstrap")
		Expect(replicas(ctx)).To(BeZero())
		Expect(m.Status.Address.URL).To(Equal("https://mlflow.opendatahub.svc:8443/mlflow"), "[D37] the address must not be lost during the migration")
		Expect(m.Status.URL).To(Equal(gatewayURL+"/mlflow"), "[D37]")
		Expect(framework.FindCondition(m.Status.Conditions, "Available").Reason).To(Equal("MigrationRunning"))
		Expect(framework.FindCondition(m.Status.Conditions, "Progressing").Status).To(Equal(metav1.ConditionTrue))
		for _, name := range []string{"mlflow-gc", "mlflow-trace-archival"} {
			job := cronJob(name)
			env.Get(ctx, job)
			Expect(job.Spec.Suspend).To(HaveValue(BeTrue()), "[D14]")
		}

		terminateJobPod(ctx, firstJob, 0)
		Eventually(replicas).WithContext(ctx).WithArguments(ctx).Should(Equal(int32(1)))
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "DeploymentNotReady")
		Expect(m.Status.Version).To(BeEmpty(), "the version was recorded before the server was ready")
		Expect(framework.FindCondition(m.Status.Conditions, "Migration").Status).To(Equal(metav1.ConditionUnknown))

		env.Patch(ctx, m, imagePatch(image))
		waitMigrated(ctx, m)
		Expect(framework.FindCondition(m.Status.Conditions, "Progressing").Reason).To(Equal("ReconcileComplete"))
		Expect(createdJobs(start)).To(Equal([]string{firstJob, "mlflow-mg-3140-g2"}), "a new image gets a new migration Job, because it may contain another MLflow")
		for _, name := range []string{"mlflow-gc", "mlflow-trace-archival"} {
			job := cronJob(name)
			env.Get(ctx, job)
			Expect(job.Spec.Suspend).To(HaveValue(BeFalse()))
		}
		env.ExpectIdle(manager.User, idlePeriod)
		env.Touch(ctx, &jobs(ctx)[0], deployment())
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return isAuthError(e.Code) })).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("is migrated once, although its Job expires before the server is ready [D12]", func(ctx SpecContext) {
		start := env.AuditPosition()
		m := newMLflow(withUnreadyPods)
		create(ctx, m)
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "DeploymentNotReady")
		Expect(m.Status.Migration.Outcome).To(Equal(mlflowv1.MigrationRolloutPending))
		job := jobs(ctx)[0]
		Expect(env.Admin.Delete(ctx, &job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		env.WaitDeleted(ctx, &job)
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"workers": 2}})
		Eventually(func() string { return template(ctx) }).WithContext(ctx).Should(ContainSubstring("--workers=2"))
		env.Patch(ctx, m, podAnnotations(nil))
		waitMigrated(ctx, m)
		Expect(createdJobs(start)).To(Equal([]string{firstJob}))
		Expect(framework.FindCondition(m.Status.Conditions, "Migration").Message).To(Equal("Migration for generation 3 completed successfully"))
	}, NodeTimeout(specTimeout))

	It("is migrated once for each generation when the spec requests it [mlflow-36]", func(ctx SpecContext) {
		start := env.AuditPosition()
		m := newMLflow(func(m *mlflowv1.MLflow) { m.Spec.Migration = &mlflowv1.MigrationConfig{Mode: mlflowv1.MigrateAlways} })
		create(ctx, m)
		waitMigrated(ctx, m)
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"workers": 2}})
		Eventually(func() []string { return createdJobs(start) }).WithContext(ctx).Should(HaveLen(2))
		waitMigrated(ctx, m)
		Expect(createdJobs(start)).To(Equal([]string{firstJob, "mlflow-mg-3140-g2"}))
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The database of an existing MLflow", func() {
	It("with an older schema is migrated while the server is stopped, and the server is restarted [mlflow-56]", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow(withJobs, func(m *mlflowv1.MLflow) {
			m.Spec.Replicas, m.Spec.Storage.AccessModes = new(int32(2)), []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}))
		manager.StopTemporarily(ctx)
		for _, job := range jobs(ctx) {
			Expect(env.Admin.Delete(ctx, &job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		}
		env.Patch(ctx, m, map[string]any{"status": map[string]any{"version": "3.10.1"}}, "status")
		start := env.AuditPosition()
		manager.Restart(ctx)
		Eventually(func() []string { return createdJobs(start) }).WithContext(ctx).Should(Equal([]string{firstJob}))
		waitMigrated(ctx, m)
		Expect(replicas(ctx)).To(Equal(int32(2)))
		var order []string
		for _, w := range env.Since(start).ObjectWrites(manager.User) {
			if w.Resource != "mlflows" && w.Verb != "delete" { // the check Job is deleted later
				order = append(order, w.Resource+"/"+w.Name)
			}
		}
		workloads := ConsistOf("cronjobs/mlflow-gc", "cronjobs/mlflow-trace-archival", "deployments/mlflow")
		Expect(order).To(HaveLen(8))
		Expect(order[0]).To(Equal("jobs/" + checkJob))
		Expect(order[1:4]).To(workloads)
		Expect(order[4]).To(Equal("jobs/mlflow-mg-3140-g1"))
		Expect(order[5:]).To(workloads)
	}, NodeTimeout(specTimeout))

	It("with an older schema is migrated only when no pod uses it, not even a terminating one [mlflow-55] [mlflow-45] [D14]", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow())
		pods := serverPods(ctx)
		Expect(pods).To(HaveLen(1))
		env.Patch(ctx, &pods[0], map[string]any{"metadata": map[string]any{"finalizers": []string{"test.opendatahub.io/hold"}}})
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(env.Admin.Patch(ctx, &pods[0], client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))).To(Succeed())
		}, NodeTimeout(specTimeout))
		start := env.AuditPosition()
		env.Patch(ctx, m, map[string]any{"status": map[string]any{"version": "3.10.1"}}, "status")
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"replicas": 1, "workers": 2}})
		waitMigrationCondition(ctx, m, metav1.ConditionUnknown, "MigrationScalingDown",
			`Waiting for MLflow pods to quiesce before migration: 1 replicas remain because status.version="3.10.1" is older than the oldest supported version 3.14.0`)
		Eventually(func(g Gomega) {
			d := deployment()
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			g.Expect(d.Status.Replicas).To(BeZero(), "the status of the Deployment still counts the terminating pod")
		}).WithContext(ctx).Should(Succeed())
		Consistently(func() []string { return createdJobs(start) }).WithContext(ctx).WithTimeout(idlePeriod).Should(BeEmpty())
		env.Patch(ctx, &pods[0], map[string]any{"metadata": map[string]any{"finalizers": nil}})
		waitMigrated(ctx, m)
		Expect(createdJobs(start)).To(HaveLen(1))
	}, NodeTimeout(specTimeout))

	It("is not migrated if it is newer than the image [D16]", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow(withJobs))
		start := env.AuditPosition()
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{
			"workers": 3, "garbageCollection": map[string]any{"schedule": "1 1 * * *"}, "image": map[string]any{"image": exit17Image},
		}})
		waitMigrationCondition(ctx, m, metav1.ConditionFalse, "DowngradeRefused", "the database has schema")
		Expect(framework.FindCondition(m.Status.Conditions, "Migration").Message).To(ContainSubstring("status.version is " + supportedVersion))
		Expect(env.Admin.Delete(ctx, networkPolicy("mlflow"))).To(Succeed())
		Eventually(func() error {
			policy := networkPolicy("mlflow")
			return env.Admin.Get(ctx, client.ObjectKeyFromObject(policy), policy)
		}).WithContext(ctx).Should(Succeed(), "the deleted NetworkPolicy was not recreated")
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.Get(ctx, m)
		Expect(framework.FindCondition(m.Status.Conditions, "Available").Status).To(Equal(metav1.ConditionTrue))
		Expect(framework.FindCondition(m.Status.Conditions, "Progressing").Reason).To(Equal("DowngradeRefused"))
		writes := env.Since(start).ByUser(manager.User).Writes()
		Expect(append(writes.ForResource("deployments"), writes.ForResource("cronjobs")...)).To(BeEmpty())
		Expect(createdJobs(start)).To(BeEmpty())

		By("restoring the previous image")
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"image": nil}})
		waitMigrated(ctx, m)
		Eventually(func() string { return template(ctx) }).WithContext(ctx).Should(ContainSubstring("--workers=3"))
		Expect(createdJobs(start)).To(BeEmpty())
	}, NodeTimeout(specTimeout))
})
