package foundation

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

// exclusiveDeployment returns a Deployment with fields that are mutually exclusive with others, such as valueFrom with value.
func exclusiveDeployment(namespace string) apply.Object {
	app := map[string]string{"app": "sensitive"}
	key := corev1ac.EnvVarSource().WithSecretKeyRef(corev1ac.SecretKeySelector().WithName("keys").WithKey("key"))
	container := corev1ac.Container().WithName("server").WithImage("image").
		WithEnv(corev1ac.EnvVar().WithName("PLAIN").WithValue("1"), corev1ac.EnvVar().WithName("KEY").WithValueFrom(key)).
		WithLivenessProbe(corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/").WithPort(intstr.FromInt32(8080)))).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("keys").WithMountPath("/keys"))
	return apply.Object{Config: appsv1ac.Deployment("sensitive", namespace).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(0).WithSelector(metav1ac.LabelSelector().WithMatchLabels(app)).
		WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(app).WithSpec(corev1ac.PodSpec().WithContainers(container).
			WithVolumes(corev1ac.Volume().WithName("keys").WithSecret(corev1ac.SecretVolumeSource().WithSecretName("keys"))))))}
}

var _ = Describe("The applier, if the API server rejects an apply,", func() {
	DescribeTable("repairs mutually exclusive fields of a Deployment in one reconcile, and then sends no write", func(ctx context.Context, patch string) {
		testEnv := newApplyEnv(ctx)
		desired := desiredOf(exclusiveDeployment(testEnv.namespace))
		testEnv.expectRequests(ctx, desired, 0, 1)
		original := content(testEnv.live(ctx, deploymentKind, "sensitive"))
		foreign := testEnv.live(ctx, deploymentKind, "sensitive")
		Expect(env.Admin.Patch(ctx, foreign, client.RawPatch(types.JSONPatchType, []byte(patch)), client.FieldOwner("kubectl-edit"))).To(Succeed())
		Expect(content(testEnv.live(ctx, deploymentKind, "sensitive"))).NotTo(Equal(original))

		testEnv.restart()
		Eventually(func(ctx context.Context) error { // the Deployment controller may cause a conflict
			_, _, err := testEnv.apply(ctx, desired)
			if apierrors.IsInvalid(err) {
				return StopTrying("the object is invalid").Wrap(err)
			}
			return err
		}).WithContext(ctx).Should(Succeed())
		Expect(content(testEnv.live(ctx, deploymentKind, "sensitive"))).To(Equal(original))
		testEnv.waitForCache(ctx, desired)
		testEnv.expectRequests(ctx, desired, 0, 0)
	},
		Entry("value for valueFrom", `[{"op":"replace","path":"/spec/template/spec/containers/0/env/1","value":{"name":"KEY","value":"evil"}}]`),
		Entry("another source of a volume", `[{"op":"replace","path":"/spec/template/spec/volumes/0","value":{"name":"keys","emptyDir":{}}}]`),
		Entry("another handler of a probe", `[{"op":"remove","path":"/spec/template/spec/containers/0/livenessProbe/httpGet"},
			{"op":"add","path":"/spec/template/spec/containers/0/livenessProbe/exec","value":{"command":["true"]}}]`),
		Entry("a strategy with parameters", `[{"op":"replace","path":"/spec/strategy","value":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":3}}}]`),
		Entry("two conflicts", `[{"op":"replace","path":"/spec/template/spec/volumes/0","value":{"name":"keys","emptyDir":{}}},
			{"op":"replace","path":"/spec/template/spec/containers/0/env/1","value":{"name":"KEY","value":"evil"}}]`),
	)

	It("recreates objects that differ in immutable fields: a binding of another role, a Secret of another type, an immutable ConfigMap", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		role := func(name string) *rbacv1ac.RoleRefApplyConfiguration {
			return rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(name)
		}
		var desired apply.Desired
		desired.Add(
			rbacv1ac.RoleBinding("binding", testEnv.namespace).WithRoleRef(role("view")),
			corev1ac.Secret("secret", testEnv.namespace).WithType(corev1.SecretTypeOpaque).WithData(map[string][]byte{"key": []byte("ours")}),
			corev1ac.ConfigMap("settings", testEnv.namespace).WithData(map[string]string{"key": "ours"}))
		testEnv.expectRequests(ctx, desired, 0, 3)
		original := map[string]types.UID{}
		bindingKind := rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
		kinds := map[string]schema.GroupVersionKind{"binding": bindingKind, "secret": secretKind, "settings": configMapKind}
		for name, kind := range kinds {
			live := testEnv.live(ctx, kind, name)
			changed := &unstructured.Unstructured{}
			changed.SetGroupVersionKind(kind)
			changed.SetNamespace(testEnv.namespace)
			changed.SetName(name)
			changed.SetLabels(live.GetLabels())
			changed.SetOwnerReferences(live.GetOwnerReferences())
			switch name {
			case "binding":
				changed.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": "edit"}
			case "secret":
				changed.Object["type"] = "example.com/other"
			case "settings":
				changed.Object["immutable"] = true
				changed.Object["data"] = map[string]any{"key": "theirs"}
			}
			Expect(env.Admin.Delete(ctx, live)).To(Succeed())
			Expect(env.Admin.Create(ctx, changed)).To(Succeed())
			original[name] = changed.GetUID()
		}
		testEnv.restart()
		_, _, err := testEnv.apply(ctx, desired)
		Expect(err).NotTo(HaveOccurred())
		for name, kind := range kinds {
			Expect(testEnv.live(ctx, kind, name).GetUID()).NotTo(Equal(original[name]), name)
		}
		Expect(testEnv.live(ctx, bindingKind, "binding").Object["roleRef"]).To(HaveKeyWithValue("name", "view"))
		Expect(testEnv.live(ctx, secretKind, "secret").Object["type"]).To(Equal("Opaque"))
		Expect(testEnv.live(ctx, configMapKind, "settings").Object["data"]).To(HaveKeyWithValue("key", "ours"))
	})

	It("never recreates objects with NeverDelete, and reports the immutable field", func(ctx context.Context) {
		testEnv := newApplyEnv(ctx)
		password := apply.Object{Config: corev1ac.Secret("password", testEnv.namespace).WithData(map[string][]byte{"key": []byte("1")}), NeverDelete: true}
		testEnv.expectRequests(ctx, desiredOf(password), 0, 1)
		live := testEnv.live(ctx, secretKind, "password")
		testEnv.patch(ctx, live.DeepCopy(), `{"immutable":true}`)
		password.Config = corev1ac.Secret("password", testEnv.namespace).WithData(map[string][]byte{"key": []byte("2")})
		_, _, err := testEnv.apply(ctx, desiredOf(password))
		Expect(err).To(MatchError(ContainSubstring("immutable")))
		Expect(testEnv.live(ctx, secretKind, "password").GetUID()).To(Equal(live.GetUID()))
	})
})

// content returns the spec as JSON, without the metadata that every write changes.
func content(object *unstructured.Unstructured) string {
	spec, err := json.Marshal(object.Object["spec"])
	Expect(err).NotTo(HaveOccurred())
	return string(spec)
}
