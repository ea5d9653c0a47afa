package raycluster_plain_test

import (
	"context"
	"crypto/tls"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// rayCluster returns a RayCluster as a user writes it.
func rayCluster(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(`
spec:
  rayVersion: "2.47.1"
  headGroupSpec:
    rayStartParams: {dashboard-host: 0.0.0.0}
    template: {spec: {containers: [{name: ray-head, image: "registry.example.com/ray:2.47.1"}]}}
`), &u.Object)).To(Succeed())
	u.SetGroupVersionKind(raycluster.GVK)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// create creates a cluster once admission responds with the settings for this sidecar.
func create(ctx context.Context, u *unstructured.Unstructured, sidecar raycluster.Auth) *unstructured.Unstructured {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		trial := u.DeepCopy()
		g.Expect(env.Admin.Create(ctx, trial, client.DryRunAll)).To(Succeed())
		g.Expect(raycluster.View(trial.Object).Injected().Sidecar).To(Equal(sidecar))
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
	Expect(env.Admin.Create(ctx, u)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, u))).To(Succeed())
		env.WaitDeleted(ctx, u)
	}, NodeTimeout(specTimeout))
	return u
}

func configure(ctx context.Context, text string) {
	GinkgoHelper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "codeflare-operator-config"}, Data: map[string]string{"config.yaml": text}}
	err := env.Admin.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		env.Patch(ctx, m, map[string]any{"data": map[string]any{"config.yaml": text}})
		return
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, m)).To(Succeed()) }, NodeTimeout(specTimeout))
}

func names(u *unstructured.Unstructured) raycluster.Names { return raycluster.View(u.Object).Names() }

func meta(u *unstructured.Unstructured, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: name}
}

func appear(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	env.WaitExists(ctx, objects...)
}

// rested waits until nothing is sent for a namespace, and checks that it remains so.
func rested(ctx context.Context, namespace string) {
	GinkgoHelper()
	requests := func(mark framework.Mark) framework.Entries {
		return framework.AtRest(env.Since(mark), manager.User).Where(func(e framework.Entry) bool { return e.Namespace == namespace })
	}
	Eventually(func(g Gomega) {
		mark := env.Mark()
		g.Consistently(func() framework.Entries { return requests(mark) }).WithTimeout(quiet).WithPolling(time.Second / 4).Should(BeEmpty())
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}

func reasons(ctx context.Context, u *unstructured.Unstructured) []string {
	list := &eventsv1.EventList{}
	if err := env.Admin.List(ctx, list, client.InNamespace(u.GetNamespace())); err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, e := range list.Items {
		if e.Regarding.UID == u.GetUID() {
			out = append(out, e.Reason)
		}
	}
	return out
}

var _ = Describe("A RayCluster on plain Kubernetes", Serial, func() {
	It("has a proxy that checks tokens before its dashboard, and says that it waits for a domain [R16] [R38]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "proxy")
		mark := env.Mark()
		u := create(ctx, rayCluster(ns, "demo"), raycluster.AuthProxy)
		n := names(u)
		certificate := &corev1.Secret{ObjectMeta: meta(u, n.ProxyTLS)}
		appear(ctx, &corev1.ConfigMap{ObjectMeta: meta(u, n.ProxyConfig)}, &corev1.Service{ObjectMeta: meta(u, n.ProxyService)},
			&corev1.ServiceAccount{ObjectMeta: meta(u, n.ServiceAccount)}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: n.ClusterRoleBinding}}, certificate)
		_, err := tls.X509KeyPair(certificate.Data[corev1.TLSCertKey], certificate.Data[corev1.TLSPrivateKeyKey])
		Expect(err).NotTo(HaveOccurred())
		Expect(raycluster.View(u.Object).Injected().Sidecar).To(Equal(raycluster.AuthProxy))
		Eventually(reasons).WithContext(ctx).WithArguments(ctx, u).WithTimeout(patience).Should(ContainElement("DashboardWaitsForDomain"))
		Expect(env.Since(mark).ByUser(manager.User).Refused()).To(BeEmpty())

		By("a domain being set")
		configure(ctx, "kuberay: {ingressDomain: apps.example.org}")
		dashboard, front := &networkingv1.Ingress{ObjectMeta: meta(u, n.Dashboard)}, &networkingv1.Ingress{ObjectMeta: meta(u, n.Client)}
		appear(ctx, dashboard, front)
		Expect(dashboard.Spec.Rules[0].Host).To(Equal("ray-dashboard-demo-" + ns + ".apps.example.org"))
		Expect(dashboard.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name).To(Equal(n.ProxyService))
		Expect(*front.Spec.IngressClassName).To(Equal("nginx"))
		Eventually(reasons).WithContext(ctx).WithArguments(ctx, u).WithTimeout(patience).Should(ContainElement("DashboardPublished"))
		rested(ctx, ns)
	}, NodeTimeout(specTimeout))

	It("is as the CodeFlare operator had it without OAuth and mTLS, but for a client port that no client could reach [R17] [R32]", func(ctx SpecContext) {
		configure(ctx, "kuberay: {rayDashboardOAuthEnabled: false, mTLSEnabled: false, ingressDomain: apps.example.org}")
		ns := env.Namespace(ctx, "open")
		u := create(ctx, rayCluster(ns, "demo"), raycluster.AuthNone)
		n := names(u)
		dashboard, head := &networkingv1.Ingress{ObjectMeta: meta(u, n.Dashboard)}, &networkingv1.NetworkPolicy{ObjectMeta: meta(u, n.HeadPolicy)}
		appear(ctx, dashboard, head)
		Expect(dashboard.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name).To(Equal("demo-head-svc"))
		Expect(dashboard.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Name).To(Equal("dashboard"))
		rested(ctx, ns)
		err := env.Admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: n.Client}, &networkingv1.Ingress{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
		for _, rule := range head.Spec.Ingress {
			for _, from := range rule.From {
				if from.NamespaceSelector != nil {
					Expect(from.NamespaceSelector.MatchExpressions[0].Values).NotTo(ContainElement("ingress-nginx"), "a tenant may have made it")
				}
			}
		}
		env.Get(ctx, u)
		Expect(u.GetFinalizers()).To(BeEmpty(), "there is nothing to finalize")
	}, NodeTimeout(specTimeout))

	It("loses sidecar and certificates when they are switched off, and all that was made for them [R28]", func(ctx SpecContext) {
		configure(ctx, "kuberay: {ingressDomain: apps.example.org}")
		ns := env.Namespace(ctx, "off")
		u := create(ctx, rayCluster(ns, "demo"), raycluster.AuthProxy)
		n := names(u)
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: n.ClusterRoleBinding}}
		secret, account := &corev1.Secret{ObjectMeta: meta(u, n.CASecret)}, &corev1.ServiceAccount{ObjectMeta: meta(u, n.ServiceAccount)}
		appear(ctx, b, secret, account)
		configure(ctx, "kuberay: {rayDashboardOAuthEnabled: false, mTLSEnabled: false, ingressDomain: apps.example.org}")
		Eventually(reasons).WithContext(ctx).WithArguments(ctx, u).WithTimeout(patience).Should(ContainElement("PodTemplatesOutdated"))
		env.Get(ctx, u)
		Expect(raycluster.View(u.Object).Injected().MTLS).To(BeTrue(), "pods that run keep what they have")
		env.Get(ctx, account)

		By("the pods being recreated")
		env.Patch(ctx, u, map[string]any{"spec": map[string]any{"suspend": true}})
		env.WaitDeleted(ctx, b, secret, account, &networkingv1.Ingress{ObjectMeta: meta(u, n.Client)})
		env.WaitFor(ctx, u, func(g Gomega) {
			g.Expect(raycluster.View(u.Object).Injected()).To(Equal(raycluster.Injected{}))
			g.Expect(u.GetFinalizers()).To(BeEmpty())
		})
		rested(ctx, ns)
	}, NodeTimeout(specTimeout))
})
