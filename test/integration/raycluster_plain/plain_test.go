package raycluster_plain_test

import (
	"context"
	"crypto/tls"

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
	}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
	Expect(env.Admin.Create(ctx, u)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, u))).To(Succeed())
		env.WaitDeleted(ctx, u)
	}, NodeTimeout(specTimeout))
	return u
}

func names(u *unstructured.Unstructured) raycluster.Names { return raycluster.View(u.Object).Names() }

func meta(u *unstructured.Unstructured, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: name}
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
	It("has a proxy that checks tokens in front of its dashboard, and reports that it waits for a domain [R16] [R38]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "proxy")
		start := env.AuditPosition()
		u := create(ctx, rayCluster(ns, "demo"), raycluster.AuthProxy)
		n := names(u)
		certificate := &corev1.Secret{ObjectMeta: meta(u, n.ProxyTLS)}
		env.WaitExists(ctx, &corev1.ConfigMap{ObjectMeta: meta(u, n.ProxyConfig)}, &corev1.Service{ObjectMeta: meta(u, n.ProxyService)},
			&corev1.ServiceAccount{ObjectMeta: meta(u, n.ServiceAccount)}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: n.ClusterRoleBinding}}, certificate)
		_, err := tls.X509KeyPair(certificate.Data[corev1.TLSCertKey], certificate.Data[corev1.TLSPrivateKeyKey])
		Expect(err).NotTo(HaveOccurred())
		Expect(raycluster.View(u.Object).Injected().Sidecar).To(Equal(raycluster.AuthProxy))
		Eventually(reasons).WithContext(ctx).WithArguments(ctx, u).WithTimeout(waitTimeout).Should(ContainElement("DashboardWaitsForDomain"))
		Expect(env.Since(start).ByUser(manager.User).Refused()).To(BeEmpty())

		By("setting a domain")
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {ingressDomain: apps.example.org}")
		dashboard, front := &networkingv1.Ingress{ObjectMeta: meta(u, n.Dashboard)}, &networkingv1.Ingress{ObjectMeta: meta(u, n.Client)}
		env.WaitExists(ctx, dashboard, front)
		Expect(dashboard.Spec.Rules[0].Host).To(Equal("ray-dashboard-demo-" + ns + ".apps.example.org"))
		Expect(dashboard.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name).To(Equal(n.ProxyService))
		Expect(*front.Spec.IngressClassName).To(Equal("nginx"))
		Eventually(reasons).WithContext(ctx).WithArguments(ctx, u).WithTimeout(waitTimeout).Should(ContainElement("DashboardPublished"))
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
	}, NodeTimeout(specTimeout))

	It("is rendered as by the CodeFlare operator without OAuth and mTLS, except for the unreachable client port [R17] [R32]", func(ctx SpecContext) {
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {rayDashboardOAuthEnabled: false, mTLSEnabled: false, ingressDomain: apps.example.org}")
		ns := env.Namespace(ctx, "open")
		u := create(ctx, rayCluster(ns, "demo"), raycluster.AuthNone)
		n := names(u)
		dashboard, head := &networkingv1.Ingress{ObjectMeta: meta(u, n.Dashboard)}, &networkingv1.NetworkPolicy{ObjectMeta: meta(u, n.HeadPolicy)}
		env.WaitExists(ctx, dashboard, head)
		Expect(dashboard.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name).To(Equal("demo-head-svc"))
		Expect(dashboard.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Name).To(Equal("dashboard"))
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
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

	It("loses sidecar and certificates when they are disabled, and the objects created for them [R28]", func(ctx SpecContext) {
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {ingressDomain: apps.example.org}")
		ns := env.Namespace(ctx, "off")
		u := create(ctx, rayCluster(ns, "demo"), raycluster.AuthProxy)
		n := names(u)
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: n.ClusterRoleBinding}}
		secret, account := &corev1.Secret{ObjectMeta: meta(u, n.CASecret)}, &corev1.ServiceAccount{ObjectMeta: meta(u, n.ServiceAccount)}
		env.WaitExists(ctx, b, secret, account)
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {rayDashboardOAuthEnabled: false, mTLSEnabled: false, ingressDomain: apps.example.org}")
		Eventually(reasons).WithContext(ctx).WithArguments(ctx, u).WithTimeout(waitTimeout).Should(ContainElement("PodTemplatesOutdated"))
		env.Get(ctx, u)
		Expect(raycluster.View(u.Object).Injected().MTLS).To(BeTrue(), "pods that run keep what they have")
		env.Get(ctx, account)

		By("recreating the pods")
		env.Patch(ctx, u, map[string]any{"spec": map[string]any{"suspend": true}})
		env.WaitDeleted(ctx, b, secret, account, &networkingv1.Ingress{ObjectMeta: meta(u, n.Client)})
		env.WaitFor(ctx, u, func(g Gomega) {
			g.Expect(raycluster.View(u.Object).Injected()).To(Equal(raycluster.Injected{}))
			g.Expect(u.GetFinalizers()).To(BeEmpty())
		})
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
	}, NodeTimeout(specTimeout))
})
