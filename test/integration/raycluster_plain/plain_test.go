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

// newRayCluster returns a minimal RayCluster.
func newRayCluster(namespace, name string) *unstructured.Unstructured {
	rayCluster := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(`
spec:
  rayVersion: "2.47.1"
  headGroupSpec:
    rayStartParams: {dashboard-host: 0.0.0.0}
    template: {spec: {containers: [{name: ray-head, image: "registry.example.com/ray:2.47.1"}]}}
`), &rayCluster.Object)).To(Succeed())
	rayCluster.SetGroupVersionKind(raycluster.GVK)
	rayCluster.SetNamespace(namespace)
	rayCluster.SetName(name)
	return rayCluster
}

// create waits until admission injects the given sidecar, and creates a cluster. It deletes the cluster after the spec.
func create(ctx context.Context, rayCluster *unstructured.Unstructured, sidecar raycluster.Auth) *unstructured.Unstructured {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		probe := rayCluster.DeepCopy()
		g.Expect(env.Admin.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		g.Expect(raycluster.View(probe.Object).Injected().Sidecar).To(Equal(sidecar))
	}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
	Expect(env.Admin.Create(ctx, rayCluster)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, rayCluster))).To(Succeed())
		env.WaitDeleted(ctx, rayCluster)
	}, NodeTimeout(specTimeout))
	return rayCluster
}

func namesOf(rayCluster *unstructured.Unstructured) raycluster.Names {
	return raycluster.View(rayCluster.Object).Names()
}

func objectMeta(rayCluster *unstructured.Unstructured, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: rayCluster.GetNamespace(), Name: name}
}

func eventReasons(ctx context.Context, rayCluster *unstructured.Unstructured) []string {
	list := &eventsv1.EventList{}
	if err := env.Admin.List(ctx, list, client.InNamespace(rayCluster.GetNamespace())); err != nil {
		return []string{err.Error()}
	}
	var reasons []string
	for _, event := range list.Items {
		if event.Regarding.UID == rayCluster.GetUID() {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}

var _ = Describe("A RayCluster on plain Kubernetes", Serial, func() {
	It("has a proxy that checks tokens in front of its dashboard, and reports that it waits for a domain [R16] [R38]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "proxy")
		start := env.AuditPosition()
		rayCluster := create(ctx, newRayCluster(ns, "demo"), raycluster.AuthProxy)
		names := namesOf(rayCluster)
		certificate := &corev1.Secret{ObjectMeta: objectMeta(rayCluster, names.ProxyTLS)}
		env.WaitExists(ctx, &corev1.ConfigMap{ObjectMeta: objectMeta(rayCluster, names.ProxyConfig)}, &corev1.Service{ObjectMeta: objectMeta(rayCluster, names.ProxyService)},
			&corev1.ServiceAccount{ObjectMeta: objectMeta(rayCluster, names.ServiceAccount)}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterRoleBinding}}, certificate)
		_, err := tls.X509KeyPair(certificate.Data[corev1.TLSCertKey], certificate.Data[corev1.TLSPrivateKeyKey])
		Expect(err).NotTo(HaveOccurred())
		Expect(raycluster.View(rayCluster.Object).Injected().Sidecar).To(Equal(raycluster.AuthProxy))
		Eventually(eventReasons).WithContext(ctx).WithArguments(ctx, rayCluster).WithTimeout(waitTimeout).Should(ContainElement("DashboardWaitsForDomain"))
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())

		By("setting a domain")
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {ingressDomain: apps.example.org}")
		dashboard, clientIngress := &networkingv1.Ingress{ObjectMeta: objectMeta(rayCluster, names.Dashboard)}, &networkingv1.Ingress{ObjectMeta: objectMeta(rayCluster, names.Client)}
		env.WaitExists(ctx, dashboard, clientIngress)
		Expect(dashboard.Spec.Rules[0].Host).To(Equal("ray-dashboard-demo-" + ns + ".apps.example.org"))
		Expect(dashboard.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name).To(Equal(names.ProxyService))
		Expect(*clientIngress.Spec.IngressClassName).To(Equal("nginx"))
		Eventually(eventReasons).WithContext(ctx).WithArguments(ctx, rayCluster).WithTimeout(waitTimeout).Should(ContainElement("DashboardPublished"))
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
	}, NodeTimeout(specTimeout))

	It("has the dashboard Ingress of the CodeFlare operator if OAuth and mTLS are disabled, but no Ingress of the client port [R17] [R32]", func(ctx SpecContext) {
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {rayDashboardOAuthEnabled: false, mTLSEnabled: false, ingressDomain: apps.example.org}")
		ns := env.Namespace(ctx, "open")
		rayCluster := create(ctx, newRayCluster(ns, "demo"), raycluster.AuthNone)
		names := namesOf(rayCluster)
		dashboard, head := &networkingv1.Ingress{ObjectMeta: objectMeta(rayCluster, names.Dashboard)}, &networkingv1.NetworkPolicy{ObjectMeta: objectMeta(rayCluster, names.HeadPolicy)}
		env.WaitExists(ctx, dashboard, head)
		Expect(dashboard.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name).To(Equal("demo-head-svc"))
		Expect(dashboard.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Name).To(Equal("dashboard"))
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		err := env.Admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: names.Client}, &networkingv1.Ingress{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
		for _, rule := range head.Spec.Ingress {
			for _, from := range rule.From {
				if from.NamespaceSelector != nil {
					Expect(from.NamespaceSelector.MatchExpressions[0].Values).NotTo(ContainElement("ingress-nginx"), "a tenant can create a namespace of this name")
				}
			}
		}
		env.Get(ctx, rayCluster)
		Expect(rayCluster.GetFinalizers()).To(BeEmpty(), "the cluster has no cluster-scoped objects")
	}, NodeTimeout(specTimeout))

	It("keeps disabled sidecars and certificates while it runs, and loses them and their objects when it is suspended [R28]", func(ctx SpecContext) {
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {ingressDomain: apps.example.org}")
		ns := env.Namespace(ctx, "disabled")
		rayCluster := create(ctx, newRayCluster(ns, "demo"), raycluster.AuthProxy)
		names := namesOf(rayCluster)
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterRoleBinding}}
		secret, account := &corev1.Secret{ObjectMeta: objectMeta(rayCluster, names.CASecret)}, &corev1.ServiceAccount{ObjectMeta: objectMeta(rayCluster, names.ServiceAccount)}
		env.WaitExists(ctx, binding, secret, account)
		env.SetConfigMap(ctx, operatorNamespace, "codeflare-operator-config", "config.yaml", "kuberay: {rayDashboardOAuthEnabled: false, mTLSEnabled: false, ingressDomain: apps.example.org}")
		Eventually(eventReasons).WithContext(ctx).WithArguments(ctx, rayCluster).WithTimeout(waitTimeout).Should(ContainElement("PodTemplatesOutdated"))
		env.Get(ctx, rayCluster)
		Expect(raycluster.View(rayCluster.Object).Injected().MTLS).To(BeTrue(), "running pods are not changed")
		env.Get(ctx, account)

		By("suspending the cluster")
		env.Patch(ctx, rayCluster, map[string]any{"spec": map[string]any{"suspend": true}})
		env.WaitDeleted(ctx, binding, secret, account, &networkingv1.Ingress{ObjectMeta: objectMeta(rayCluster, names.Client)})
		env.WaitFor(ctx, rayCluster, func(g Gomega) {
			g.Expect(raycluster.View(rayCluster.Object).Injected()).To(Equal(raycluster.Injected{}))
			g.Expect(rayCluster.GetFinalizers()).To(BeEmpty())
		})
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
	}, NodeTimeout(specTimeout))
})
