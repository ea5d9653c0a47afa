package platform_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var (
	mlflowRelease   = platformv1alpha1.Release{Name: "MLflow", Version: "3.14.0", RepoURL: "https://github.com/mlflow/mlflow"}
	platformRelease = func(version string) platformv1alpha1.Release {
		return platformv1alpha1.Release{Name: "platform", Version: version}
	}
)

var _ = Describe("An MLflowOperator", func() {
	It("has a finalizer and is reported ready with two releases, the platform first [mlflow-57] [mlflow-59]", func(ctx SpecContext) {
		create(ctx, platformVersionConfigMap("2.30.0"))
		m := mlflowOperator()
		start := env.AuditPosition()
		create(ctx, m)
		waitReady(ctx, m, metav1.ConditionTrue, "Ready")
		Expect(m.Finalizers).To(ContainElement(finalizer))
		Expect(m.Status.Phase).To(Equal(platformv1alpha1.PhaseReady))
		Expect(m.Status.Releases).To(Equal([]platformv1alpha1.Release{platformRelease("2.30.0"), mlflowRelease}))
		ready := findCondition(m, "Ready")
		Expect(ready.Message).To(Equal("MLflowOperator is ready to manage MLflow custom resources"))
		Expect(ready.Severity).To(BeEmpty())
		Expect(ready.LastTransitionTime.IsZero()).To(BeFalse())
		Expect(ready.LastHeartbeatTime).NotTo(BeNil())
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Since(start).ObjectWrites(manager.User)).To(HaveLen(2), "the finalizer and one status:\n%s", env.Since(start).ObjectWrites(manager.User))
	}, NodeTimeout(specTimeout))

	It("waits for the fields that the platform must set, and names them [mlflow-58]", func(ctx SpecContext) {
		m := create(ctx, mlflowOperator(func(m *platformv1alpha1.MLflowOperator) { m.Spec.SectionTitle = "" }))
		waitReady(ctx, m, metav1.ConditionFalse, "ConfigPending")
		Expect(findCondition(m, "Ready").Message).To(Equal("Waiting for MLflowOperator spec fields before managing MLflow custom resources: spec.sectionTitle"))
		Expect(m.Status.Phase).To(Equal(platformv1alpha1.PhaseProgressing))

		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"gatewayName": nil}})
		waitReady(ctx, m, metav1.ConditionFalse, "ConfigPending")
		Expect(findCondition(m, "Ready").Message).To(HaveSuffix(": spec.gatewayName, spec.sectionTitle"))

		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"gatewayName": "g", "sectionTitle": "s"}})
		waitReady(ctx, m, metav1.ConditionTrue, "Ready")
	}, NodeTimeout(specTimeout))

	It("lists only the release of MLflow until the platform has a version [mlflow-60]", func(ctx SpecContext) {
		m := create(ctx, mlflowOperator())
		waitReady(ctx, m, metav1.ConditionTrue, "Ready")
		Expect(m.Status.Releases).To(Equal([]platformv1alpha1.Release{mlflowRelease}))

		c := create(ctx, platformVersionConfigMap("v2.30.0\n"))
		expectReleases := func(want ...platformv1alpha1.Release) {
			GinkgoHelper()
			env.WaitFor(ctx, m, func(g Gomega) { g.Expect(m.Status.Releases).To(Equal(want)) })
		}
		expectReleases(platformRelease("v2.30.0"), mlflowRelease)
		env.Patch(ctx, c, map[string]any{"data": map[string]any{"platformVersion": "2.31.0-rc.1"}})
		expectReleases(platformRelease("2.31.0-rc.1"), mlflowRelease)
		env.Patch(ctx, c, map[string]any{"data": map[string]any{"platformVersion": nil}})
		expectReleases(mlflowRelease)
		env.Patch(ctx, c, map[string]any{"data": map[string]any{"platformVersion": "2.32.0"}})
		expectReleases(platformRelease("2.32.0"), mlflowRelease)
		Expect(env.Admin.Delete(ctx, c)).To(Succeed())
		expectReleases(mlflowRelease)
	}, NodeTimeout(specTimeout))

	It("reports an invalid version in a separate condition [mlflow-61] [D32]", func(ctx SpecContext) {
		c := create(ctx, platformVersionConfigMap("tomorrow"))
		m := create(ctx, mlflowOperator())
		waitReady(ctx, m, metav1.ConditionTrue, "Ready")
		Expect(m.Status.Releases).To(Equal([]platformv1alpha1.Release{mlflowRelease}))
		invalid := findCondition(m, "PlatformVersionValid")
		Expect(invalid).NotTo(BeNil())
		Expect(invalid.Status).To(Equal(metav1.ConditionFalse))
		Expect(invalid.Severity).To(Equal(platformv1alpha1.SeverityInfo))
		Expect(invalid.Message).To(And(HavePrefix("invalid platform version in opendatahub/odh-mlflowoperator-config: "),
			ContainSubstring(`platformVersion "tomorrow"`), ContainSubstring("write a semantic version")))
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)

		env.Patch(ctx, c, map[string]any{"data": map[string]any{"platformVersion": "2.30.0"}})
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(m.Status.Releases).To(Equal([]platformv1alpha1.Release{platformRelease("2.30.0"), mlflowRelease}))
			g.Expect(findCondition(m, "PlatformVersionValid")).To(BeNil())
		})
	}, NodeTimeout(specTimeout))

	It("reads the version only from the ConfigMap of the applications namespace [mlflow-62]", func(ctx SpecContext) {
		m := create(ctx, mlflowOperator())
		waitReady(ctx, m, metav1.ConditionTrue, "Ready")
		waitIdle()
		start := env.AuditPosition()
		otherNamespaceConfig := platformVersionConfigMap("2.30.0")
		otherNamespaceConfig.Namespace = env.Namespace(ctx, "other")
		create(ctx, otherNamespaceConfig)
		create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "another"}, Data: map[string]string{"platformVersion": "2.30.0"}})
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Since(start).ByUser(manager.User).ForResource("configmaps").Reads()).To(BeEmpty())
		env.Get(ctx, m)
		Expect(m.Status.Releases).To(Equal([]platformv1alpha1.Release{mlflowRelease}))
	}, NodeTimeout(specTimeout))

	It("keeps the conditions that the platform sets, and restores those of the manager after the platform replaces the list [D32]", func(ctx SpecContext) {
		m := create(ctx, mlflowOperator())
		waitReady(ctx, m, metav1.ConditionTrue, "Ready")
		waitIdle()
		foreign := map[string]any{"type": "ProvisioningSucceeded", "status": "False", "reason": "Theirs", "message": "m", "severity": "Info"}
		env.Patch(ctx, m, map[string]any{"status": map[string]any{"phase": "Confused", "conditions": []any{foreign}}}, "status")
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(findCondition(m, "Ready")).NotTo(BeNil())
			g.Expect(m.Status.Phase).To(Equal(platformv1alpha1.PhaseReady))
		})
		kept := findCondition(m, "ProvisioningSucceeded")
		Expect(kept).NotTo(BeNil())
		Expect(kept.Reason).To(Equal("Theirs"))
		Expect(kept.Severity).To(Equal(platformv1alpha1.SeverityInfo))
		waitIdle()
		env.ExpectIdle(manager.User, idlePeriod)

		// Conflicts with concurrent writes do not make the MLflowOperator unready.
		for round := range 20 {
			env.Patch(ctx, m, map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"example.com/round": time.Duration(round).String()}},
				"spec":     map[string]any{"sectionTitle": time.Duration(round).String()},
			})
		}
		waitReady(ctx, m, metav1.ConditionTrue, "Ready")
		Expect(findCondition(m, "ProvisioningSucceeded")).NotTo(BeNil())
		waitIdle()
	}, NodeTimeout(specTimeout))

	It("keeps the transition time of an unchanged condition", func(ctx SpecContext) {
		m := create(ctx, mlflowOperator())
		waitReady(ctx, m, metav1.ConditionTrue, "Ready")
		waitIdle()
		before := *findCondition(m, "Ready")
		env.SetLabel(ctx, m, "example.com/touched", "yes")
		env.ExpectIdle(manager.User, idlePeriod)
		env.Get(ctx, m)
		Expect(*findCondition(m, "Ready")).To(Equal(before))
	}, NodeTimeout(specTimeout))

	It("is rejected with another name", func(ctx SpecContext) {
		other := mlflowOperator(func(m *platformv1alpha1.MLflowOperator) { m.Name = "another" })
		err := env.Admin.Create(ctx, other)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("MLflowOperator name must be default-mlflowoperator")))
	}, NodeTimeout(specTimeout))

	It("becomes ready with the spec of the sample, and is not written after a restart", func(ctx SpecContext) {
		samples, err := framework.ReadObjects("../../../config/samples/platform_mlflowoperator.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(samples).To(HaveLen(1))
		create(ctx, samples[0])
		m := mlflowOperator()
		waitReady(ctx, m, metav1.ConditionTrue, "Ready")
		waitIdle()
		start := env.AuditPosition()
		manager.Restart(ctx)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		Expect(env.Since(start).ObjectWrites(manager.User)).To(BeEmpty())
	}, NodeTimeout(specTimeout))
})
