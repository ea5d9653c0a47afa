package mlflow_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// template returns the pod template of the server as a string. No pod is replaced while it is unchanged.
func template(ctx context.Context) string {
	GinkgoHelper()
	d := deployment()
	env.Get(ctx, d)
	return d.Spec.Template.String()
}

func waitForRollout(ctx context.Context, original string) {
	GinkgoHelper()
	Eventually(template).WithContext(ctx).WithArguments(ctx).WithTimeout(specTimeout).ShouldNot(Equal(original))
	env.WaitIdle(manager.User, idlePeriod, specTimeout)
}

func expectNoRollout(ctx context.Context, original string) {
	GinkgoHelper()
	env.WaitIdle(manager.User, idlePeriod, specTimeout)
	Expect(template(ctx)).To(Equal(original))
}

var _ = Describe("Secrets and ConfigMaps that a server consumes [D19]", func() {
	It("restart the pods when their content changes, and only then", func(ctx SpecContext) {
		db := secret("db", map[string]string{"uri": "postgresql://a", "unused": "x"})
		create(ctx, db)
		createReady(ctx, newMLflow(withoutVolumes))
		original := template(ctx)

		By("creating the serving certificate after the server")
		tls := secret("mlflow-tls", map[string]string{"tls.crt": "one", "tls.key": "one"})
		create(ctx, tls)
		expectNoRollout(ctx, original)

		By("changing a key that no pod consumes")
		env.Patch(ctx, db, map[string]any{"stringData": map[string]any{"unused": "y"}})
		expectNoRollout(ctx, original)

		By("changing a label")
		env.SetLabel(ctx, db, "touched", "yes")
		expectNoRollout(ctx, original)

		By("rotating the database password")
		env.Patch(ctx, db, map[string]any{"stringData": map[string]any{"uri": "postgresql://b"}})
		waitForRollout(ctx, original)

		By("renewing the serving certificate")
		original = template(ctx)
		env.Patch(ctx, tls, map[string]any{"stringData": map[string]any{"tls.crt": "two"}})
		waitForRollout(ctx, original)

		By("removing the label of the operator from the Deployment, which removes it from the cache")
		original = template(ctx)
		env.Patch(ctx, deployment(), map[string]any{"metadata": map[string]any{"labels": map[string]any{names.OperatorLabel: nil}}})
		d := deployment()
		env.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Labels).To(HaveKey(names.OperatorLabel)) })
		expectNoRollout(ctx, original)

		By("rotating the database password while the manager is stopped")
		original = template(ctx)
		manager.StopTemporarily(ctx)
		env.Patch(ctx, db, map[string]any{"stringData": map[string]any{"uri": "postgresql://c"}})
		manager.Restart(ctx)
		waitForRollout(ctx, original)
		original = template(ctx)
		manager.Restart(ctx)
		expectNoRollout(ctx, original)
	}, NodeTimeout(specTimeout))

	It("are reported with the fix if they are missing", func(ctx SpecContext) {
		m := newMLflow(withoutVolumes, func(m *mlflowv1.MLflow) {
			m.Spec.PodAnnotations = map[string]string{cluster.PodBehaviorAnnotation: "not-ready"}
		})
		create(ctx, m)
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(message(m, "Available")).To(ContainSubstring("Secret db does not exist; create it in namespace opendatahub"))
		})
	}, NodeTimeout(specTimeout))

	It("include the ConfigMap of the CA bundle: the server waits until it exists [mlflow-12]", func(ctx SpecContext) {
		m := newMLflow(func(m *mlflowv1.MLflow) { m.Spec.CABundleConfigMap = &mlflowv1.CABundleConfigMapRef{Name: "corporate"} })
		create(ctx, m)
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "CABundleConfigMapError")
		Expect(message(m, "Available")).To(Equal(`CA bundle ConfigMap "corporate" not found in namespace "opendatahub": create it, or correct spec.caBundleConfigMap`))
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectAbsent(ctx, deployment())

		create(ctx, configMap("corporate", map[string]string{"root.crt": "x"}))
		waitAvailable(ctx, m)
		original := template(ctx)
		Expect(original).To(ContainSubstring("corporate"))

		By("creating the CA bundle of the platform")
		create(ctx, configMap("odh-trusted-ca-bundle", map[string]string{"ca-bundle.crt": "x"}))
		waitForRollout(ctx, original)
		Expect(template(ctx)).To(ContainSubstring("odh-trusted-ca-bundle"))
	}, NodeTimeout(specTimeout))

	It("in other namespaces or with other names cause no request", func(ctx SpecContext) {
		createReady(ctx, newMLflow())
		start := env.AuditPosition()
		other := env.Namespace(ctx, "other")
		for _, o := range []client.Object{
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "mlflow-tls"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "unrelated"}},
		} {
			create(ctx, o)
		}
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Since(start).ByUser(manager.User).Reads()).To(BeEmpty())
	}, NodeTimeout(specTimeout))
})

func message(m *mlflowv1.MLflow, condition string) string {
	for _, c := range m.Status.Conditions {
		if c.Type == condition {
			return c.Message
		}
	}
	return ""
}

var _ = Describe("The Secret of an MLflowConfig", func() {
	It("is reported while it or its bucket is missing [mlflow-98]", func(ctx SpecContext) {
		config := &mlflowconfigv1.MLflowConfig{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(ctx, "workspace"), Name: mlflowconfigv1.Name}}
		config.Spec.ArtifactRootSecret = "mlflow-artifact-connection"
		create(ctx, config)
		expectCondition := func(status metav1.ConditionStatus, reason, text string) {
			GinkgoHelper()
			env.WaitFor(ctx, config, func(g Gomega) {
				c, found := conditions.Get(config.Status.Conditions, "ReferencesReady")
				g.Expect(found).To(BeTrue())
				g.Expect(c.Status).To(Equal(status))
				g.Expect(c.Reason).To(Equal(reason))
				g.Expect(c.Message).To(ContainSubstring(text))
			})
		}
		expectCondition(metav1.ConditionFalse, "ReferencesMissing", "Secret mlflow-artifact-connection does not exist; create it")
		s := secret(config.Spec.ArtifactRootSecret, map[string]string{"AWS_ACCESS_KEY_ID": "key"})
		s.Namespace = config.Namespace
		create(ctx, s)
		expectCondition(metav1.ConditionFalse, "ReferencesMissing", "has no key AWS_S3_BUCKET; add it")
		env.Patch(ctx, s, map[string]any{"stringData": map[string]any{"AWS_S3_BUCKET": "experiments"}})
		expectCondition(metav1.ConditionTrue, "ReferencesFound", "names a bucket")
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.Patch(ctx, s, map[string]any{"stringData": map[string]any{"AWS_S3_BUCKET": "others"}})
		env.ExpectNoWrites(manager.User, idlePeriod)
		Expect(env.Admin.Delete(ctx, s)).To(Succeed())
		expectCondition(metav1.ConditionFalse, "ReferencesMissing", "does not exist")

		By("configuring a separate archive")
		env.Patch(ctx, config, map[string]any{"spec": map[string]any{"artifactRootSecret": nil, "archiveRootSecret": "mlflow-archive-secret", "traceArchivalRetention": "7d"}})
		expectCondition(metav1.ConditionFalse, "ReferencesMissing", "Secret mlflow-archive-secret does not exist; create it; until then archived traces go to the bucket of the server")
		archive := secret("mlflow-archive-secret", map[string]string{"AWS_S3_BUCKET": "archive"})
		archive.Namespace = config.Namespace
		create(ctx, archive)
		expectCondition(metav1.ConditionTrue, "ReferencesFound", "Secret mlflow-archive-secret names a bucket")
		env.WaitIdle(manager.User, idlePeriod, specTimeout) // Events are sent later
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))
})
