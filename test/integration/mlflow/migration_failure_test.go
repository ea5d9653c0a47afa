package mlflow_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// userJob returns a Job that a user created.
func userJob(name string, labels map[string]string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy:   corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "db-migrate", Image: unpullableImage, SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}
	return job
}

var _ = Describe("A migration that fails permanently", func() {
	It("keeps the server stopped, reports the reason, and does not run again after a restart until it is forced [mlflow-50] [mlflow-53] [mlflow-54] [D15]", func(ctx SpecContext) {
		start := env.AuditPosition()
		m := newMLflow(withImage(exit11Image))
		create(ctx, m)
		const hint = ". After fixing the issue, add the mlflow.opendatahub.io/force-migrate annotation to the MLflow resource to force a rerun."
		waitMigrationCondition(ctx, m, metav1.ConditionFalse, "MigrationFailed", "operator-managed migration only supports SQL backend store URIs: use one that begins with sqlite, postgresql or mysql"+hint)
		Expect(framework.FindCondition(m.Status.Conditions, "Available").Reason).To(Equal("MigrationFailed"))
		Expect(framework.FindCondition(m.Status.Conditions, "Progressing").Status).To(Equal(metav1.ConditionFalse))
		Expect(replicas(ctx)).To(BeZero())
		Expect(jobs(ctx)[0].Status.Failed).To(Equal(int32(1)), "a permanent exit code must not be retried")
		env.WaitIdle(manager.User, idlePeriod, specTimeout) // Events are sent later
		env.ExpectIdle(manager.User, idlePeriod)

		By("deleting the Job, changing the spec and restarting the manager")
		job := jobs(ctx)[0]
		Expect(env.Admin.Delete(ctx, &job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		env.WaitDeleted(ctx, &job)
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"workers": 2}})
		waitMigrationCondition(ctx, m, metav1.ConditionFalse, "MigrationFailed", hint)
		manager.Restart(ctx)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		Expect(createdJobs(start)).To(Equal([]string{firstJob}))
		Expect(replicas(ctx)).To(BeZero())

		By("setting the annotation")
		setForceAnnotation(ctx, m, "yes")
		Eventually(func() []string { return createdJobs(start) }).WithContext(ctx).Should(HaveLen(2))
		waitMigrationCondition(ctx, m, metav1.ConditionFalse, "MigrationFailed", hint)
	}, NodeTimeout(specTimeout))

	It("is retried when the image changes, without the annotation [D11]", func(ctx SpecContext) {
		m := newMLflow(withImage(exit11Image))
		create(ctx, m)
		waitMigrationCondition(ctx, m, metav1.ConditionFalse, "MigrationFailed", "")
		env.Patch(ctx, m, imagePatch(image))
		waitMigrated(ctx, m)
	}, NodeTimeout(specTimeout))

	It("is restarted in a new Job by the annotation [mlflow-54] [D13]", func(ctx SpecContext) {
		m := newMLflow(withImage(exit11Image))
		create(ctx, m)
		waitMigrationCondition(ctx, m, metav1.ConditionFalse, "MigrationFailed", "")
		firstUID := jobs(ctx)[0].UID
		setForceAnnotation(ctx, m, "yes")
		Eventually(func(g Gomega) {
			found := jobs(ctx)
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].UID).NotTo(Equal(firstUID))
			for _, pod := range jobPods(ctx) {
				g.Expect(metav1.GetControllerOf(&pod).UID).NotTo(Equal(firstUID))
			}
		}).WithContext(ctx).Should(Succeed())
		waitMigrationCondition(ctx, m, metav1.ConditionFalse, "MigrationFailed", "")
	}, NodeTimeout(specTimeout))

	It("is not repeated if the legacy operator recorded it, and is recorded in status.migration [mlflow-53] [D11]", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		m := newMLflow()
		create(ctx, m)
		env.Patch(ctx, m, map[string]any{"status": map[string]any{"conditions": []map[string]any{{
			"type": "Migration", "status": "False", "reason": "MigrationFailed", "message": "recorded by the legacy operator", "observedGeneration": 1,
			"lastTransitionTime": "2026-01-01T00:00:00Z",
		}}}}, "status")
		start := env.AuditPosition()
		manager.Restart(ctx)
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(m.Status.Migration).NotTo(BeNil())
			g.Expect(m.Status.Migration.Outcome).To(Equal(mlflowv1.MigrationFailed))
		})
		Expect(framework.FindCondition(m.Status.Conditions, "Available").Message).To(Equal("recorded by the legacy operator"))
		Expect(createdJobs(start)).To(BeEmpty())
		env.Patch(ctx, m, imagePatch("quay.io/example/mlflow:v4"))
		waitMigrated(ctx, m)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A migration that fails temporarily", func() {
	It("is retried after a delay, and reports the time [mlflow-51] [mlflow-52]", func(ctx SpecContext) {
		m := newMLflow(withImage(exit15Image), func(m *mlflowv1.MLflow) {
			m.Spec.Storage.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		})
		create(ctx, m)
		disableBackoff(ctx)
		waitMigrationCondition(ctx, m, metav1.ConditionUnknown, "MigrationRetrying", "Retrying automatically after ")
		Expect(framework.FindCondition(m.Status.Conditions, "Migration").Message).To(ContainSubstring(
			"If you want to rerun immediately after fixing the issue, add the mlflow.opendatahub.io/force-migrate annotation."))
		Expect(replicas(ctx)).To(BeZero())
		start := env.AuditPosition()
		due := backdateFailure(ctx, retryPause-4*time.Second)
		waitMigrationCondition(ctx, m, metav1.ConditionUnknown, "MigrationRetrying", "Retrying automatically after "+due.UTC().Format(time.RFC3339))
		Eventually(func() []string { return createdJobs(start) }).WithContext(ctx).WithTimeout(2 * retryPause).Should(Equal([]string{firstJob}))
		env.Patch(ctx, m, imagePatch(image))
		waitMigrated(ctx, m)
	}, NodeTimeout(2*specTimeout))
})

// retryPause is the time between a transient failure and the next attempt.
const retryPause = 2 * time.Minute

// backdateFailure moves the failure of the Job into the past, and returns the time of the next attempt.
func backdateFailure(ctx context.Context, duration time.Duration) time.Time {
	GinkgoHelper()
	job := &jobs(ctx)[0]
	original := job.DeepCopy()
	var due time.Time
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == batchv1.JobFailed {
			c.LastTransitionTime = metav1.NewTime(c.LastTransitionTime.Add(-duration))
			due = c.LastTransitionTime.Add(retryPause)
		}
	}
	Expect(env.Admin.Status().Patch(ctx, job, client.MergeFrom(original))).To(Succeed())
	Expect(due.IsZero()).To(BeFalse(), "the Job has not failed")
	return due
}

// disableBackoff sets the backoffLimit of the Job to 0, because the backoff of its pods grows up to a minute.
func disableBackoff(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		found := jobs(ctx)
		g.Expect(found).To(HaveLen(1))
		g.Expect(found[0].Status.Failed).To(BeNumerically(">=", 1))
		job := &found[0]
		original := job.DeepCopy()
		job.Spec.BackoffLimit = new(int32(0))
		g.Expect(env.Admin.Patch(ctx, job, client.MergeFrom(original))).To(Succeed())
	}).WithContext(ctx).Should(Succeed())
}

var _ = Describe("A migration Job that cannot start", func() {
	It("reports why it cannot start, and is replaced when the spec is corrected [D8] [D9]", func(ctx SpecContext) {
		start := env.AuditPosition()
		m := newMLflow(withImage(unpullableImage))
		create(ctx, m)
		waitMigrationCondition(ctx, m, metav1.ConditionUnknown, "MigrationRunning", `image "testcluster.invalid/image-pull:x" of container db-migrate cannot be pulled`)
		Expect(framework.FindCondition(m.Status.Conditions, "Available").Message).To(ContainSubstring("cannot be pulled"))
		env.Patch(ctx, m, imagePatch(image))
		waitMigrated(ctx, m)
		Expect(createdJobs(start)).To(Equal([]string{firstJob, "mlflow-mg-3140-g2"}))
		Eventually(jobs).WithContext(ctx).WithArguments(ctx).Should(HaveLen(1))
	}, NodeTimeout(specTimeout))

	It("reports the missing Secret [D9]", func(ctx SpecContext) {
		m := newMLflow(withImage(unpullableImage), withoutVolumes)
		create(ctx, m)
		env.Patch(ctx, waitMigrationPod(ctx), map[string]any{"status": map[string]any{"containerStatuses": nil}}, "status")
		waitMigrationCondition(ctx, m, metav1.ConditionUnknown, "MigrationRunning", "Secret db does not exist; create it in namespace opendatahub")
	}, NodeTimeout(specTimeout))

	It("is terminated at its deadline [D9]", func(ctx SpecContext) {
		m := newMLflow(withImage(unpullableImage), func(m *mlflowv1.MLflow) {
			m.Spec.Migration = &mlflowv1.MigrationConfig{ActiveDeadlineSeconds: new(int64(60))}
		})
		create(ctx, m)
		waitMigrationPod(ctx)
		job := &jobs(ctx)[0]
		Expect(job.Spec.ActiveDeadlineSeconds).To(HaveValue(BeEquivalentTo(60)))
		env.Patch(ctx, job, map[string]any{"spec": map[string]any{"activeDeadlineSeconds": 1}}) // the minimum of an MLflow is a minute
		waitMigrationCondition(ctx, m, metav1.ConditionUnknown, "MigrationRetrying", "deadline")
	}, NodeTimeout(specTimeout))

	It("is replaced if the legacy operator created it, although it is not cached [D8]", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		m := newMLflow()
		create(ctx, m)
		legacyJob := userJob("mlflow-mg-3130-g1", map[string]string{
			"mlflow.opendatahub.io/migration-job": "true", "mlflow.opendatahub.io/migration-instance": "mlflow", "component": "mlflow-migration"})
		legacyJob.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, mlflowv1.GroupVersion.WithKind("MLflow"))}
		create(ctx, legacyJob)
		manager.Restart(ctx)
		env.WaitDeleted(ctx, legacyJob)
		waitMigrated(ctx, m)
	}, NodeTimeout(specTimeout))
})

// waitMigrationPod waits until the fake node has written the status of the migration Job's pod, which would overwrite earlier patches.
func waitMigrationPod(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	var pods []corev1.Pod
	Eventually(func(g Gomega) {
		pods = jobPods(ctx)
		g.Expect(pods).To(HaveLen(1))
		g.Expect(pods[0].Status.Conditions).To(ContainElement(HaveField("Reason", "TestclusterBehavior")))
	}).WithContext(ctx).Should(Succeed())
	return &pods[0]
}

var _ = Describe("A migration Job that runs", func() {
	It("is not replaced when the MLflow is edited [D8]", func(ctx SpecContext) {
		start := env.AuditPosition()
		m := newMLflow(withImage(neverReadyImage))
		create(ctx, m)
		Eventually(func(g Gomega) {
			pods := jobPods(ctx)
			g.Expect(pods).To(HaveLen(1))
			g.Expect(pods[0].Status.Phase).To(Equal(corev1.PodRunning))
		}).WithContext(ctx).Should(Succeed())
		env.Patch(ctx, m, imagePatch(image))
		waitMigrationCondition(ctx, m, metav1.ConditionUnknown, "MigrationRunning", "Waiting for migration Job "+firstJob+" from a previous desired generation to finish because status.version is empty during bootstrap")
		Expect(createdJobs(start)).To(HaveLen(1))
		terminateJobPod(ctx, firstJob, 0)
		waitMigrated(ctx, m)
		Expect(createdJobs(start)).To(Equal([]string{firstJob, "mlflow-mg-3140-g2"}))
	}, NodeTimeout(specTimeout))
})
