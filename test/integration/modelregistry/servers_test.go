package modelregistry_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

var _ = Describe("The servers of a registry", func() {
	It("are scaled by the scale subresource, and get a PodDisruptionBudget if there is more than one", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(env.Namespace(ctx, "servers"), "scaled"))
		budget := child(registry, &policyv1.PodDisruptionBudget{}, "")
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(budget), budget)).NotTo(Succeed(), "a PodDisruptionBudget for a single replica would block node drains")
		since := meta.FindStatusCondition(registry.Status.Conditions, "Available").LastTransitionTime
		scale := &autoscalingv1.Scale{}
		Expect(env.Admin.SubResource("scale").Get(ctx, registry, scale)).To(Succeed())
		Expect(scale.Spec.Replicas).To(Equal(int32(1)))
		Expect(scale.Status.Selector).To(Equal("app.kubernetes.io/name=scaled,app=scaled,component=model-registry"))
		scale.Spec.Replicas = 2
		Expect(env.Admin.SubResource("scale").Update(ctx, registry, client.WithSubResourceBody(scale))).To(Succeed())
		env.WaitFor(ctx, budget, nil)
		env.WaitFor(ctx, registry, func(g Gomega) { g.Expect(registry.Status.Replicas).To(Equal(int32(2))) })
		env.WaitForCondition(ctx, registry, "Ready", metav1.ConditionTrue, "DeploymentAvailable")

		By("rolling out pods that do not start, while the previous pods serve")
		env.Patch(ctx, registry, map[string]any{"spec": map[string]any{"rest": map[string]any{"image": "testcluster.invalid/image-pull:1"}}})
		env.WaitForCondition(ctx, registry, "Ready", metav1.ConditionFalse, "")
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(framework.FindCondition(registry.Status.Conditions, "Available").Message).To(ContainSubstring("the rollout of the current spec is not finished"))
		})
		env.Patch(ctx, registry, map[string]any{"spec": map[string]any{"rest": map[string]any{"image": nil}, "replicas": 1}})
		env.WaitDeleted(ctx, budget)
		env.WaitForCondition(ctx, registry, "Ready", metav1.ConditionTrue, "DeploymentAvailable")
		Expect(meta.FindStatusCondition(registry.Status.Conditions, "Available").LastTransitionTime).To(Equal(since), "Available changed, although a pod was available all the time")
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("keep their scheduling fields when a client of v1alpha1 changes another field", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "servers")
		registry := newRegistry(ns, "placed", func(registry *v1beta1.ModelRegistry) { registry.Spec.Pods = registrytest.Placed() })
		create(ctx, passwordSecret(ns, "first"), proxyCertificate(registry), registry)
		alphaRegistry := &v1alpha1.ModelRegistry{}
		Eventually(ctx, func(ctx context.Context) error { // the status may change concurrently
			if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(registry), alphaRegistry); err != nil {
				return err
			}
			alphaRegistry.Spec.Rest.Port = new(int32(8088))
			return env.Admin.Update(ctx, alphaRegistry)
		}).Should(Succeed())
		env.Get(ctx, registry)
		Expect(registry.Spec.Pods).To(Equal(registrytest.Placed()))
		deployment := child(registry, &appsv1.Deployment{}, "")
		env.WaitFor(ctx, deployment, nil)
		Expect(deployment.Spec.Template.Spec.PriorityClassName).To(Equal("important"))
		env.WaitForCondition(ctx, registry, "ReferencesReady", metav1.ConditionFalse, "ReferencesMissing")
		Expect(framework.FindCondition(registry.Status.Conditions, "ReferencesReady").Message).To(Equal("In namespace " + ns +
			": ConfigMap authorities does not exist; create it; Secret client does not exist; create it; Secret mirror does not exist; create it"))
	}, NodeTimeout(specTimeout))

	DescribeTable("are rejected with invalid fields", func(ctx SpecContext, fields, message string) {
		registry := newRegistry("default", "wrong")
		Expect(yaml.UnmarshalStrict([]byte(fields), &registry.Spec.Pods)).To(Succeed())
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(registry)
		Expect(err).NotTo(HaveOccurred())
		u := framework.Unstructured(v1beta1.GroupVersion.WithKind("ModelRegistry"), "default", "wrong")
		u.Object["spec"] = content["spec"]
		Expect(env.Admin.Create(ctx, u, client.DryRunAll)).To(MatchError(ContainSubstring(message)))
	},
		Entry("zero replicas", "{replicas: 0}", "should be greater than or equal to 1"),
		Entry("a mount without its volume", "{volumeMounts: [{name: v, mountPath: /v}]}", "each volumeMounts entry must name an entry of volumes"),
		Entry("a volume without a source", "{volumes: [{name: v}]}", "a volume must have exactly one of configMap, secret, projected"),
		Entry("an invalid priorityClassName", "{priorityClassName: Very High}", "priorityClassName must be the name of a PriorityClass"),
		Entry("an invalid whenUnsatisfiable", "{topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Perhaps}]}", "DoNotSchedule or ScheduleAnyway"),
		Entry("a label value of more than 63 characters", "{nodeSelector: {a: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}", "label values must be 63 characters or less"),
	)
})
