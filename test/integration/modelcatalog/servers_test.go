package modelcatalog_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("The servers of the catalog", func() {
	It("follow the scale subresource, and have a PodDisruptionBudget if there are several", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		c := env.createReady(ctx, catalog(ns, func(s *aihubv1alpha1.CatalogSpec) {
			s.Volumes = []server.Volume{{Name: "login", Secret: &corev1.SecretVolumeSource{SecretName: "login", Optional: new(true)}}}
			s.VolumeMounts = []corev1.VolumeMount{{Name: "login", MountPath: "/etc/login"}}
		}))
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta(ns, "model-catalog")}
		env.ExpectAbsent(ctx, budget)
		since := apimeta.FindStatusCondition(c.Status.Conditions, "Available").LastTransitionTime
		scale := &autoscalingv1.Scale{}
		Expect(env.Admin.SubResource("scale").Get(ctx, c, scale)).To(Succeed())
		Expect(scale.Spec.Replicas).To(Equal(int32(1)))
		Expect(scale.Status.Selector).To(Equal("app.kubernetes.io/name=model-catalog,app=model-catalog,component=model-catalog"))
		scale.Spec.Replicas = 2
		Expect(env.Admin.SubResource("scale").Update(ctx, c, client.WithSubResourceBody(scale))).To(Succeed())
		env.WaitExists(ctx, budget)
		env.WaitFor(ctx, c, func(g Gomega) { g.Expect(c.Status.Replicas).To(Equal(int32(2))) })
		env.WaitForCondition(ctx, c, "Ready", metav1.ConditionTrue, "DeploymentAvailable")

		By("referencing a Secret that does not exist")
		env.Patch(ctx, c, map[string]any{"spec": map[string]any{"replicas": 1, "imagePullSecrets": []any{map[string]any{"name": "mirror"}}}})
		env.WaitForCondition(ctx, c, "ReferencesReady", metav1.ConditionFalse, "ReferencesMissing")
		env.WaitDeleted(ctx, budget)
		env.create(ctx, secret(ns, "mirror"))
		env.WaitForCondition(ctx, c, "Ready", metav1.ConditionTrue, "DeploymentAvailable")
		Expect(apimeta.FindStatusCondition(c.Status.Conditions, "Available").LastTransitionTime).To(Equal(since), "it must have been available all the time")
		env.waitIdle()
		env.ExpectIdle(env.manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	DescribeTable("are rejected with invalid fields", func(ctx SpecContext, fields map[string]any, refusal string) {
		c := framework.Unstructured(aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind), registries, aihubv1alpha1.CatalogName)
		c.Object["spec"] = fields
		Expect(onKubernetes.Admin.Create(ctx, c, client.DryRunAll)).To(MatchError(ContainSubstring(refusal)))
	},
		Entry("zero replicas", map[string]any{"replicas": int64(0)}, "should be greater than or equal to 1"),
		Entry("a mount without its volume", map[string]any{"volumeMounts": []any{map[string]any{"name": "v", "mountPath": "/v"}}}, "each volumeMounts entry must name an entry of volumes"),
		Entry("a hostPath volume", map[string]any{"volumes": []any{map[string]any{"name": "v", "hostPath": map[string]any{"path": "/"}}}}, "a volume must have exactly one of configMap, secret, projected"),
		Entry("an invalid priorityClassName", map[string]any{"priorityClassName": "Very High"}, "priorityClassName must be the name of a PriorityClass"),
	)
})
