package mlflow_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func cronJob(name string) *batchv1.CronJob {
	return &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// garbageCollectionObjects returns the objects of garbage collection.
func garbageCollectionObjects() []client.Object {
	return []client.Object{
		serviceAccount("mlflow-gc-sa"), cronJob("mlflow-gc"),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mlflow-gc"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mlflow-gc"}},
	}
}

// traceArchivalObjects returns the objects of trace archival.
func traceArchivalObjects() []client.Object {
	return []client.Object{
		serviceAccount("mlflow-trace-archival-sa"), cronJob("mlflow-trace-archival"),
		configMap("mlflow-trace-archival-config", nil),
	}
}

func withJobs(m *mlflowv1.MLflow) {
	m.Spec.GarbageCollection = &mlflowv1.GarbageCollectionConfig{Schedule: "15 3 * * 0", OlderThan: "30d"}
	m.Spec.TraceArchival = &mlflowv1.TraceArchivalConfig{Enabled: true, Schedule: "0 */6 * * *", Location: "file:///mlflow/archive", Retention: "14d"}
}

var _ = Describe("Garbage collection and trace archival", func() {
	It("[D1] are created with the shipped permissions, send no write in the steady state, and are repaired [mlflow-15] [mlflow-26]", func(ctx SpecContext) {
		start := env.AuditPosition()
		m := createReady(ctx, newMLflow(withJobs))
		for _, child := range append(garbageCollectionObjects(), traceArchivalObjects()...) {
			env.Get(ctx, child)
			Expect(metav1.IsControlledBy(child, m)).To(BeTrue(), "%T %s", child, child.GetName())
		}
		Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return isAuthError(e.Code) })).To(BeEmpty())

		env.ExpectIdle(manager.User, idlePeriod)
		env.Touch(ctx, append(garbageCollectionObjects(), traceArchivalObjects()...)...)
		env.ExpectIdle(manager.User, idlePeriod)

		By("restarting the manager")
		start = env.AuditPosition()
		manager.Restart(ctx)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		requests := env.Since(start).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
		Expect(requests.Writes()).To(BeEmpty(), "writes after a restart:\n%s", requests.Writes())

		By("changing and deleting objects as a user")
		env.Patch(ctx, cronJob("mlflow-gc"), map[string]any{"spec": map[string]any{"schedule": "* * * * *"}})
		config := configMap("mlflow-trace-archival-config", nil)
		Expect(env.Admin.Delete(ctx, config)).To(Succeed())
		Eventually(func(g Gomega) {
			job := cronJob("mlflow-gc")
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(job), job)).To(Succeed())
			g.Expect(job.Spec.Schedule).To(Equal("15 3 * * 0"))
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(config), config)).To(Succeed())
		}).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(specTimeout))

	It("are deleted when they are disabled, and similar foreign objects are kept [mlflow-32]", func(ctx SpecContext) {
		lookalike := configMap("mlflow-lookalike", map[string]string{"a": "b"})
		lookalike.Labels = map[string]string{
			"app": "mlflow-gc", "platform.opendatahub.io/operator": "odh-platform-operator", "platform.opendatahub.io/component": "mlflow",
		}
		create(ctx, lookalike)
		m := createReady(ctx, newMLflow(withJobs))
		start := env.AuditPosition()
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"garbageCollection": nil, "traceArchival": map[string]any{"enabled": false}}})
		for _, child := range append(garbageCollectionObjects(), traceArchivalObjects()...) {
			env.WaitDeleted(ctx, child)
		}
		waitAvailable(ctx, m)
		for _, child := range append(children(), claim(), lookalike) {
			env.Get(ctx, child)
			Expect(child.GetDeletionTimestamp()).To(BeNil())
		}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}}
		env.Get(ctx, binding)
		Expect(binding.Subjects).To(HaveLen(1))
		Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return isAuthError(e.Code) })).To(BeEmpty())
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("use ServiceAccounts that a user created, and keep them", func(ctx SpecContext) {
		account := serviceAccount("mlflow-gc-sa")
		account.Annotations = map[string]string{"example.com/role": "cleaner"}
		create(ctx, account)
		m := createReady(ctx, newMLflow(withJobs))
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"garbageCollection": nil}})
		env.WaitDeleted(ctx, cronJob("mlflow-gc"))
		env.Get(ctx, account)
		Expect(account.DeletionTimestamp).To(BeNil())
		Expect(account.OwnerReferences).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("restart the server when the retention of the archive changes, and not for a new schedule [D19]", func(ctx SpecContext) {
		m := createReady(ctx, newMLflow(withJobs))
		original := template(ctx)
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"traceArchival": map[string]any{"schedule": "0 1 * * *"}}})
		expectNoRollout(ctx, original)
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"traceArchival": map[string]any{"retention": "15d"}}})
		waitForRollout(ctx, original)
		config := &corev1.ConfigMap{ObjectMeta: configMap("mlflow-trace-archival-config", nil).ObjectMeta}
		env.Get(ctx, config)
		Expect(config.Data["trace-archival.yaml"]).To(ContainSubstring("retention: 15d"))
	}, NodeTimeout(specTimeout))

	It("are rejected with a schedule that a CronJob does not accept [D27]", func(ctx SpecContext) {
		m := newMLflow(withJobs)
		m.Spec.GarbageCollection.Schedule = "60 * * * *"
		Expect(env.Admin.Create(ctx, m, client.DryRunAll)).To(MatchError(And(
			ContainSubstring("spec.garbageCollection.schedule"), ContainSubstring("the minute in schedule must be 0-59"))))
	}, NodeTimeout(specTimeout))
})
