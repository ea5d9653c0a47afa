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
		m := createReady(ctx, registry(namespace, namespace, func(m *v1beta1.ModelRegistry) {
			m.Annotations = map[string]string{"openshift.io/display-name": "Ours", "openshift.io/description": "Of us"}
		}))
		for _, c := range append(children(m), delegator(m), group(m)) {
			env.Get(ctx, c)
			Expect(c.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", "modelregistry"), "%T", c)
		}
		for _, c := range children(m) {
			env.Get(ctx, c)
			Expect(c.GetOwnerReferences()).To(HaveLen(1), "%T", c)
		}
		Expect(m.Status.Hosts).To(Equal([]string{
			m.Name + "-rest." + domain, m.Name + "." + namespace + ".svc.cluster.local", m.Name + "." + namespace, m.Name,
		}))
		s := child(m, &corev1.Service{}, "")
		env.Get(ctx, s)
		Expect(s.Annotations).To(And(HaveKeyWithValue("openshift.io/display-name", "Ours"), HaveKeyWithValue("openshift.io/description", "Of us"),
			HaveKeyWithValue("routing.opendatahub.io/external-address-rest", m.Name+"-rest."+domain+":443")))
		Expect(m.Status.ObservedGeneration).To(Equal(m.Generation), "[D19]")
		for _, c := range m.Status.Conditions {
			Expect(c.ObservedGeneration).To(Equal(m.Generation), "[D19] condition %s", c.Type)
		}
		Expect(env.Since(start).ByUser(manager.User).Refused()).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("sends no request in the steady state, nor when its children are touched, and no write when the manager restarts [modelregistry-101] [W5] [W6]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace))
		env.WaitIdle(manager.User, quiet, specTimeout)
		env.Touch(ctx, append(children(m), delegator(m), group(m))...)
		env.ExpectIdle(manager.User, quiet)
		env.SetAnnotation(ctx, child(m, &appsv1.Deployment{}, ""), "example.com/note", "changes the generation of a Deployment")
		env.ExpectNoWrites(manager.User, quiet)
		start := env.AuditPosition()
		manager.Restart(ctx)
		env.WaitIdle(manager.User, quiet, specTimeout)
		writes := env.Since(start).ChildWrites(manager.User)
		Expect(writes).To(BeEmpty(), "writes after a restart:\n%s", writes)
	}, NodeTimeout(specTimeout))

	It("repairs objects that others change, delete or unlabel [D8] [W1]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace))
		env.WaitIdle(manager.User, quiet, specTimeout)
		proxy, policy := child(m, &corev1.ConfigMap{}, "-kube-rbac-proxy-config"), child(m, &networkingv1.NetworkPolicy{}, "-ingress")
		env.Get(ctx, proxy)
		data := proxy.Data["config-file.yaml"]
		env.Patch(ctx, proxy, map[string]any{"data": map[string]any{"config-file.yaml": "authorization: {}"}})
		Expect(env.Admin.Delete(ctx, policy)).To(Succeed())
		Expect(env.Admin.Delete(ctx, delegator(m))).To(Succeed())
		unlabelled := map[string]any{"metadata": map[string]any{"labels": nil}}
		s := child(m, &corev1.Service{}, "")
		env.Patch(ctx, s, unlabelled)
		env.Patch(ctx, group(m), unlabelled)
		env.WaitFor(ctx, proxy, func(g Gomega) { g.Expect(proxy.Data["config-file.yaml"]).To(Equal(data)) })
		env.WaitFor(ctx, policy, nil)
		env.WaitFor(ctx, delegator(m), nil)
		for _, o := range []client.Object{s, group(m)} {
			env.WaitFor(ctx, o, func(g Gomega) {
				g.Expect(o.GetLabels()).To(HaveKeyWithValue("app.kubernetes.io/created-by", "model-registry-operator"), "%T", o)
			})
		}
	}, NodeTimeout(specTimeout))

	It("keeps additions of others: users of the group, pull Secrets, annotations [D5]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace))
		account, users := child(m, &corev1.ServiceAccount{}, ""), group(m)
		env.Patch(ctx, users, map[string]any{"users": []any{"ann"}, "metadata": map[string]any{"labels": map[string]any{"app": "other"}}})
		env.Patch(ctx, account, map[string]any{"imagePullSecrets": []any{map[string]any{"name": "pull"}},
			"metadata": map[string]any{"annotations": map[string]any{"theirs": "1"}, "labels": map[string]any{"app": "other"}}})
		env.WaitFor(ctx, users, func(g Gomega) { g.Expect(users.GetLabels()).To(HaveKeyWithValue("app", m.Name)) })
		list, _, err := unstructured.NestedStringSlice(users.Object, "users")
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(Equal([]string{"ann"}))
		env.WaitFor(ctx, account, func(g Gomega) { g.Expect(account.Labels).To(HaveKeyWithValue("app", m.Name)) })
		Expect(account.ImagePullSecrets).To(HaveLen(1))
		Expect(account.Annotations).To(HaveKeyWithValue("theirs", "1"))
	}, NodeTimeout(specTimeout))

	It("restarts its pods when a password is rotated, and for no other key of the Secret [W2]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace))
		env.WaitIdle(manager.User, quiet, specTimeout)
		d := child(m, &appsv1.Deployment{}, "")
		env.Get(ctx, d)
		generation := d.Generation
		env.Patch(ctx, password(namespace, ""), map[string]any{"data": map[string]any{"other": "Mg=="}})
		env.WaitIdle(manager.User, quiet, specTimeout)
		env.Get(ctx, d)
		Expect(d.Generation).To(Equal(generation), "a key that the pods do not consume")
		env.Patch(ctx, password(namespace, ""), map[string]any{"data": map[string]any{"password": "c2Vjb25k"}})
		env.WaitFor(ctx, d, func(g Gomega) {
			g.Expect(d.Spec.Template.Annotations).To(HaveKey("platform.opendatahub.io/references-rollout"))
		})
	}, NodeTimeout(specTimeout))

	It("reports missing references while its pods keep running, until they exist again", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace))
		Expect(framework.FindCondition(m.Status.Conditions, "ReferencesReady").Type).To(BeEmpty())
		expectMessage := func(message string) {
			GinkgoHelper()
			env.WaitFor(ctx, m, func(g Gomega) {
				g.Expect(framework.FindCondition(m.Status.Conditions, "ReferencesReady").Message).To(Equal(message))
			})
			Expect(framework.FindCondition(m.Status.Conditions, "ReferencesReady").Reason).To(Equal("ReferencesMissing"))
			Expect(framework.FindCondition(m.Status.Conditions, "Available").Status).To(Equal(metav1.ConditionTrue), "its pods run on")
			env.WaitIdle(manager.User, quiet, specTimeout)
			env.ExpectIdle(manager.User, quiet)
		}
		env.Delete(ctx, password(namespace, ""))
		expectMessage("In namespace " + namespace + ": Secret db does not exist; create it")
		another := password(namespace, "")
		another.StringData = map[string]string{"other": "1"}
		create(ctx, another)
		expectMessage("In namespace " + namespace + ": Secret db has no key password; add it")
		env.Patch(ctx, another, map[string]any{"data": map[string]any{"password": "c2Vjb25k"}})
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(framework.FindCondition(m.Status.Conditions, "ReferencesReady").Type).To(BeEmpty())
		})
	}, NodeTimeout(specTimeout))

	It("loses Route and policy when the spec disables them, and gets them back [modelregistry-29] [modelregistry-32]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace))
		Expect(env.Exists(ctx, framework.Unstructured(routeKind, namespace, m.Name+"-http"))).To(BeFalse())
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{
			"kubeRBACProxy": map[string]any{"serviceRoute": "disabled"}, "rest": map[string]any{"serviceRoute": "enabled"}}})
		env.WaitDeleted(ctx, framework.Unstructured(routeKind, namespace, m.Name+"-https"))
		env.WaitDeleted(ctx, child(m, &networkingv1.NetworkPolicy{}, "-https-route"))
		env.WaitFor(ctx, framework.Unstructured(routeKind, namespace, m.Name+"-http"), nil)
		waitAvailable(ctx, m)
		Expect(m.Status.Hosts).To(HaveLen(3))
		env.Get(ctx, delegator(m))
		env.Get(ctx, child(m, &networkingv1.NetworkPolicy{}, "-ingress")) // [S1]
		env.Get(ctx, group(m))
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{
			"kubeRBACProxy": map[string]any{"serviceRoute": "enabled"}, "rest": map[string]any{"serviceRoute": "disabled"}}})
		env.WaitDeleted(ctx, framework.Unstructured(routeKind, namespace, m.Name+"-http"))
		env.WaitFor(ctx, framework.Unstructured(routeKind, namespace, m.Name+"-https"), nil)
		env.WaitFor(ctx, child(m, &networkingv1.NetworkPolicy{}, "-https-route"), nil)
	}, NodeTimeout(specTimeout))

	It("adopts a change of the domain of the cluster without a restart [modelregistry-64] [W8]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace))
		env.Patch(ctx, ingress(), map[string]any{"spec": map[string]any{"appsDomain": "new.example.com"}})
		DeferCleanup(func(ctx SpecContext) {
			env.Patch(ctx, ingress(), map[string]any{"spec": map[string]any{"appsDomain": nil}})
			env.WaitFor(ctx, m, func(g Gomega) { g.Expect(m.Status.Hosts).To(ContainElement(m.Name + "-rest." + domain)) })
		}, NodeTimeout(specTimeout))
		env.WaitFor(ctx, m, func(g Gomega) { g.Expect(m.Status.Hosts).To(ContainElement(m.Name + "-rest.new.example.com")) })
		route := framework.Unstructured(routeKind, namespace, m.Name+"-https")
		env.WaitFor(ctx, route, func(g Gomega) {
			host, _, err := unstructured.NestedString(route.Object, "spec", "host")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(host).To(Equal(m.Name + "-rest.new.example.com"))
		})
	}, NodeTimeout(specTimeout))

	It("is deleted with its cluster-scoped objects, also if those have another owner [D1] [D4]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace, func(m *v1beta1.ModelRegistry) { m.Finalizers = []string{"example.com/other"} }))
		start := env.AuditPosition()
		Expect(env.Admin.Delete(ctx, m)).To(Succeed())
		env.WaitDeleted(ctx, delegator(m), group(m))
		env.WaitFor(ctx, m, func(g Gomega) { g.Expect(m.Finalizers).To(Equal([]string{"example.com/other"})) })
		Expect(framework.FindCondition(m.Status.Conditions, "Degraded").Reason).To(Equal("Finalizing"))
		env.WaitIdle(manager.User, quiet, specTimeout)
		Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return e.Code >= 422 })).To(BeEmpty(), "[D4] no finalizer is added now")
		env.Patch(ctx, m, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		env.WaitDeleted(ctx, m)
	}, NodeTimeout(specTimeout))

	It("has conditions of older releases removed, and stale ones updated [modelregistry-52] [D19]", func(ctx SpecContext) {
		m := registry(namespace, namespace, func(m *v1beta1.ModelRegistry) {
			m.Annotations = map[string]string{"platform.opendatahub.io/paused": "true"}
			m.Spec.Rest.Image = "testcluster.invalid/image-pull:1"
		})
		create(ctx, password(namespace, "first"), certificate(m), m)
		env.WaitForCondition(ctx, m, "Paused", metav1.ConditionTrue, "")
		for _, kind := range []string{"KubeRBACProxyAvailable", "OAuthProxyAvailable", "IstioAvailable", "GatewayAvailable"} {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: metav1.Unix(1, 0)})
		}
		env.Patch(ctx, m, map[string]any{"status": map[string]any{"conditions": m.Status.Conditions}}, "status")
		env.SetAnnotation(ctx, m, "platform.opendatahub.io/paused", nil)
		env.WaitForCondition(ctx, m, "KubeRBACProxyAvailable", metav1.ConditionFalse, "ResourcesUnavailable")
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(framework.FindCondition(m.Status.Conditions, "Available").Message).To(MatchRegexp(`^Deployment is unavailable: pod \S+ has unready containers \[.*rest-container: \{waiting: \{reason: ImagePullBackOff`))
		})
		for _, kind := range []string{"OAuthProxyAvailable", "IstioAvailable", "GatewayAvailable", "Paused"} {
			Expect(framework.FindCondition(m.Status.Conditions, kind)).To(Equal(metav1.Condition{}), kind)
		}
		env.WaitIdle(manager.User, quiet, specTimeout)
		env.ExpectNoWrites(manager.User, quiet) // W3: no writes while it is not available
	}, NodeTimeout(specTimeout))
})
