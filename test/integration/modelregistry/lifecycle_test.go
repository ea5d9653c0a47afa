package modelregistry_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("A registry", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "registry") }, NodeTimeout(specTimeout))

	It("creates a running server behind a proxy, and publishes its addresses [modelregistry-25] [modelregistry-30] [modelregistry-41]", func(ctx SpecContext) {
		start := env.AuditPosition()
		registry := createReady(ctx, newRegistry(namespace, namespace, func(registry *v1beta1.ModelRegistry) {
			registry.Annotations = map[string]string{"openshift.io/display-name": "Models", "openshift.io/description": "Models of the team"}
		}))
		for _, c := range append(children(registry), authDelegatorBinding(registry), usersGroup(registry)) {
			env.Get(ctx, c)
			Expect(c.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", "modelregistry"), "%T", c)
		}
		for _, c := range children(registry) {
			env.Get(ctx, c)
			Expect(c.GetOwnerReferences()).To(HaveLen(1), "%T", c)
		}
		Expect(registry.Status.Hosts).To(Equal([]string{
			registry.Name + "-rest." + domain, registry.Name + "." + namespace + ".svc.cluster.local", registry.Name + "." + namespace, registry.Name,
		}))
		service := child(registry, &corev1.Service{}, "")
		env.Get(ctx, service)
		Expect(service.Annotations).To(And(HaveKeyWithValue("openshift.io/display-name", "Models"), HaveKeyWithValue("openshift.io/description", "Models of the team"),
			HaveKeyWithValue("routing.opendatahub.io/external-address-rest", registry.Name+"-rest."+domain+":443")))
		Expect(registry.Status.ObservedGeneration).To(Equal(registry.Generation), "[D19]")
		for _, c := range registry.Status.Conditions {
			Expect(c.ObservedGeneration).To(Equal(registry.Generation), "[D19] condition %s", c.Type)
		}
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("sends no request in the steady state, nor when its children are touched, and no write when the manager restarts [modelregistry-101] [W5] [W6]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace))
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.Touch(ctx, append(children(registry), authDelegatorBinding(registry), usersGroup(registry))...)
		env.ExpectIdle(manager.User, idlePeriod)
		env.SetAnnotation(ctx, child(registry, &appsv1.Deployment{}, ""), "example.com/note", "changes the generation of a Deployment")
		env.ExpectNoWrites(manager.User, idlePeriod)
		start := env.AuditPosition()
		manager.Restart(ctx)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		writes := env.Since(start).ObjectWrites(manager.User)
		Expect(writes).To(BeEmpty(), "writes after a restart:\n%s", writes)
	}, NodeTimeout(specTimeout))

	It("repairs objects that other clients change, delete or unlabel [D8] [W1]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace))
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		proxy, policy := child(registry, &corev1.ConfigMap{}, "-kube-rbac-proxy-config"), child(registry, &networkingv1.NetworkPolicy{}, "-ingress")
		env.Get(ctx, proxy)
		data := proxy.Data["config-file.yaml"]
		env.Patch(ctx, proxy, map[string]any{"data": map[string]any{"config-file.yaml": "authorization: {}"}})
		Expect(env.Admin.Delete(ctx, policy)).To(Succeed())
		Expect(env.Admin.Delete(ctx, authDelegatorBinding(registry))).To(Succeed())
		withoutLabels := map[string]any{"metadata": map[string]any{"labels": nil}}
		service := child(registry, &corev1.Service{}, "")
		env.Patch(ctx, service, withoutLabels)
		env.Patch(ctx, usersGroup(registry), withoutLabels)
		env.WaitFor(ctx, proxy, func(g Gomega) { g.Expect(proxy.Data["config-file.yaml"]).To(Equal(data)) })
		env.WaitFor(ctx, policy, nil)
		env.WaitFor(ctx, authDelegatorBinding(registry), nil)
		for _, o := range []client.Object{service, usersGroup(registry)} {
			env.WaitFor(ctx, o, func(g Gomega) {
				g.Expect(o.GetLabels()).To(HaveKeyWithValue("app.kubernetes.io/created-by", "model-registry-operator"), "%T", o)
			})
		}
	}, NodeTimeout(specTimeout))

	It("keeps additions of other clients: users of the group, pull Secrets, annotations [D5]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace))
		account, users := child(registry, &corev1.ServiceAccount{}, ""), usersGroup(registry)
		env.Patch(ctx, users, map[string]any{"users": []any{"ann"}, "metadata": map[string]any{"labels": map[string]any{"app": "other"}}})
		env.Patch(ctx, account, map[string]any{"imagePullSecrets": []any{map[string]any{"name": "pull"}},
			"metadata": map[string]any{"annotations": map[string]any{"theirs": "1"}, "labels": map[string]any{"app": "other"}}})
		env.WaitFor(ctx, users, func(g Gomega) { g.Expect(users.GetLabels()).To(HaveKeyWithValue("app", registry.Name)) })
		list, _, err := unstructured.NestedStringSlice(users.Object, "users")
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(Equal([]string{"ann"}))
		env.WaitFor(ctx, account, func(g Gomega) { g.Expect(account.Labels).To(HaveKeyWithValue("app", registry.Name)) })
		Expect(account.ImagePullSecrets).To(HaveLen(1))
		Expect(account.Annotations).To(HaveKeyWithValue("theirs", "1"))
	}, NodeTimeout(specTimeout))

	It("restarts its pods when a password is rotated, and not for a key that they do not use [W2]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace))
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		deployment := child(registry, &appsv1.Deployment{}, "")
		env.Get(ctx, deployment)
		generation := deployment.Generation
		env.Patch(ctx, passwordSecret(namespace, ""), map[string]any{"data": map[string]any{"other": "Mg=="}})
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.Get(ctx, deployment)
		Expect(deployment.Generation).To(Equal(generation), "the pods do not use the changed key")
		env.Patch(ctx, passwordSecret(namespace, ""), map[string]any{"data": map[string]any{"password": "c2Vjb25k"}})
		env.WaitFor(ctx, deployment, func(g Gomega) {
			g.Expect(deployment.Spec.Template.Annotations).To(HaveKey("platform.opendatahub.io/references-rollout"))
		})
	}, NodeTimeout(specTimeout))

	It("reports missing references while its pods keep running, until they exist again", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace))
		Expect(framework.FindCondition(registry.Status.Conditions, "ReferencesReady").Type).To(BeEmpty())
		expectMessage := func(message string) {
			GinkgoHelper()
			env.WaitFor(ctx, registry, func(g Gomega) {
				g.Expect(framework.FindCondition(registry.Status.Conditions, "ReferencesReady").Message).To(Equal(message))
			})
			Expect(framework.FindCondition(registry.Status.Conditions, "ReferencesReady").Reason).To(Equal("ReferencesMissing"))
			Expect(framework.FindCondition(registry.Status.Conditions, "Available").Status).To(Equal(metav1.ConditionTrue), "its pods keep running")
			env.WaitIdle(manager.User, idlePeriod, specTimeout)
			env.ExpectIdle(manager.User, idlePeriod)
		}
		env.Delete(ctx, passwordSecret(namespace, ""))
		expectMessage("In namespace " + namespace + ": Secret db does not exist; create it")
		recreated := passwordSecret(namespace, "")
		recreated.StringData = map[string]string{"other": "1"}
		create(ctx, recreated)
		expectMessage("In namespace " + namespace + ": Secret db has no key password; add it")
		env.Patch(ctx, recreated, map[string]any{"data": map[string]any{"password": "c2Vjb25k"}})
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(framework.FindCondition(registry.Status.Conditions, "ReferencesReady").Type).To(BeEmpty())
		})
	}, NodeTimeout(specTimeout))

	It("loses its Route and NetworkPolicy when the spec disables them, and gets them again when it enables them [modelregistry-29] [modelregistry-32]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace))
		Expect(env.Exists(ctx, framework.Unstructured(routeKind, namespace, registry.Name+"-http"))).To(BeFalse())
		env.Patch(ctx, registry, map[string]any{"spec": map[string]any{
			"kubeRBACProxy": map[string]any{"serviceRoute": "disabled"}, "rest": map[string]any{"serviceRoute": "enabled"}}})
		env.WaitDeleted(ctx, framework.Unstructured(routeKind, namespace, registry.Name+"-https"))
		env.WaitDeleted(ctx, child(registry, &networkingv1.NetworkPolicy{}, "-https-route"))
		env.WaitFor(ctx, framework.Unstructured(routeKind, namespace, registry.Name+"-http"), nil)
		waitAvailable(ctx, registry)
		Expect(registry.Status.Hosts).To(HaveLen(3))
		env.Get(ctx, authDelegatorBinding(registry))
		env.Get(ctx, child(registry, &networkingv1.NetworkPolicy{}, "-ingress")) // [S1]
		env.Get(ctx, usersGroup(registry))
		env.Patch(ctx, registry, map[string]any{"spec": map[string]any{
			"kubeRBACProxy": map[string]any{"serviceRoute": "enabled"}, "rest": map[string]any{"serviceRoute": "disabled"}}})
		env.WaitDeleted(ctx, framework.Unstructured(routeKind, namespace, registry.Name+"-http"))
		env.WaitFor(ctx, framework.Unstructured(routeKind, namespace, registry.Name+"-https"), nil)
		env.WaitFor(ctx, child(registry, &networkingv1.NetworkPolicy{}, "-https-route"), nil)
	}, NodeTimeout(specTimeout))

	It("uses a new domain of the cluster without a restart [modelregistry-64] [W8]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace))
		env.Patch(ctx, clusterIngress(), map[string]any{"spec": map[string]any{"appsDomain": "new.example.com"}})
		DeferCleanup(func(ctx SpecContext) {
			env.Patch(ctx, clusterIngress(), map[string]any{"spec": map[string]any{"appsDomain": nil}})
			env.WaitFor(ctx, registry, func(g Gomega) { g.Expect(registry.Status.Hosts).To(ContainElement(registry.Name + "-rest." + domain)) })
		}, NodeTimeout(specTimeout))
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(registry.Status.Hosts).To(ContainElement(registry.Name + "-rest.new.example.com"))
		})
		route := framework.Unstructured(routeKind, namespace, registry.Name+"-https")
		env.WaitFor(ctx, route, func(g Gomega) {
			host, _, err := unstructured.NestedString(route.Object, "spec", "host")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(host).To(Equal(registry.Name + "-rest.new.example.com"))
		})
	}, NodeTimeout(specTimeout))

	It("is deleted with its cluster-scoped objects, even if it has another finalizer [D1] [D4]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace, func(registry *v1beta1.ModelRegistry) { registry.Finalizers = []string{"example.com/other"} }))
		start := env.AuditPosition()
		Expect(env.Admin.Delete(ctx, registry)).To(Succeed())
		env.WaitDeleted(ctx, authDelegatorBinding(registry), usersGroup(registry))
		env.WaitFor(ctx, registry, func(g Gomega) { g.Expect(registry.Finalizers).To(Equal([]string{"example.com/other"})) })
		Expect(framework.FindCondition(registry.Status.Conditions, "Degraded").Reason).To(Equal("Finalizing"))
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return e.Code >= 422 })).To(BeEmpty(), "[D4] no finalizer is added during the deletion")
		env.Patch(ctx, registry, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		env.WaitDeleted(ctx, registry)
	}, NodeTimeout(specTimeout))

	It("loses conditions of earlier releases, and updates stale ones [modelregistry-52] [D19]", func(ctx SpecContext) {
		registry := newRegistry(namespace, namespace, func(registry *v1beta1.ModelRegistry) {
			registry.Annotations = map[string]string{"platform.opendatahub.io/paused": "true"}
			registry.Spec.Rest.Image = "testcluster.invalid/image-pull:1"
		})
		create(ctx, passwordSecret(namespace, "first"), proxyCertificate(registry), registry)
		env.WaitForCondition(ctx, registry, "Paused", metav1.ConditionTrue, "")
		for _, conditionType := range []string{"KubeRBACProxyAvailable", "OAuthProxyAvailable", "IstioAvailable", "GatewayAvailable"} {
			registry.Status.Conditions = append(registry.Status.Conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: metav1.Unix(1, 0)})
		}
		env.Patch(ctx, registry, map[string]any{"status": map[string]any{"conditions": registry.Status.Conditions}}, "status")
		env.SetAnnotation(ctx, registry, "platform.opendatahub.io/paused", nil)
		env.WaitForCondition(ctx, registry, "KubeRBACProxyAvailable", metav1.ConditionFalse, "ResourcesUnavailable")
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(framework.FindCondition(registry.Status.Conditions, "Available").Message).To(MatchRegexp(`^Deployment is unavailable: pod \S+ has unready containers \[.*rest-container: \{waiting: \{reason: ImagePullBackOff`))
		})
		for _, conditionType := range []string{"OAuthProxyAvailable", "IstioAvailable", "GatewayAvailable", "Paused"} {
			Expect(framework.FindCondition(registry.Status.Conditions, conditionType)).To(Equal(metav1.Condition{}), conditionType)
		}
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectNoWrites(manager.User, idlePeriod) // [W3]
	}, NodeTimeout(specTimeout))
})
