package raycluster_plain_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// startManagerWith runs a manager with a setting in place of the shared one.
func startManagerWith(ctx context.Context, name string, more ...string) *framework.Manager {
	GinkgoHelper()
	o := options
	o.Name, o.Env = name, more
	other := env.StartManager(ctx, o)
	return other
}

var _ = Describe("The Route, HTTPRoute or Ingress of a dashboard", Serial, func() {
	It("follows the setting for all servers, and objects of the previous setting are deleted", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "exposed")
		u := create(ctx, rayCluster(ns, "demo"), raycluster.AuthProxy)
		n := names(u)
		manager.StopTemporarily(ctx)
		DeferCleanup(func(ctx SpecContext) { manager.Restart(ctx) }, NodeTimeout(specTimeout))

		By("exposing by a Gateway that verifies the sidecar")
		other := startManagerWith(ctx, "gateway", "EXPOSURE=gateway", "GATEWAY_NAME=public", "GATEWAY_NAMESPACE=gateways")
		route, policy := framework.Unstructured(capability.HTTPRoute, u.GetNamespace(), n.Dashboard), framework.Unstructured(capability.BackendTLSPolicy, u.GetNamespace(), n.Dashboard+"-ca")
		authority, secret := &corev1.ConfigMap{ObjectMeta: meta(u, n.Dashboard+"-ca")}, &corev1.Secret{ObjectMeta: meta(u, n.ProxyTLS)}
		env.WaitExists(ctx, route, policy, authority)
		env.Get(ctx, secret)
		Expect(authority.Data).To(HaveKeyWithValue("ca.crt", string(secret.Data["ca.crt"])))
		Expect(route.Object["spec"]).To(HaveKeyWithValue("parentRefs", ConsistOf(And(HaveKeyWithValue("name", "public"), HaveKeyWithValue("namespace", "gateways")))))
		found := &unstructured.UnstructuredList{} // like codeflare-sdk, in all namespaces
		found.SetGroupVersionKind(route.GroupVersionKind())
		Expect(env.Admin.List(ctx, found, client.MatchingLabels{"ray.io/cluster-name": "demo", "ray.io/cluster-namespace": ns})).To(Succeed())
		Expect(found.Items).To(ConsistOf(HaveField("GetName()", route.GetName())))
		env.WaitIdle(other.User, quiet, specTimeout)
		env.ExpectIdle(other.User, quiet)

		By("restarting the manager without deleting objects in between")
		uid := policy.GetUID()
		other.Stop(ctx)
		other = startManagerWith(ctx, "gateway-again", "EXPOSURE=gateway", "GATEWAY_NAME=public", "GATEWAY_NAMESPACE=gateways")
		env.WaitIdle(other.User, quiet, specTimeout)
		env.Get(ctx, policy)
		Expect(policy.GetUID()).To(Equal(uid))
		other.Stop(ctx)

		By("exposing by an Ingress")
		other = startManagerWith(ctx, "ingress", "EXPOSURE=ingress", "INGRESS_DOMAIN=ai.example.org", "INGRESS_CLASS=edge")
		dashboard := &networkingv1.Ingress{ObjectMeta: meta(u, n.Dashboard)}
		env.WaitExists(ctx, dashboard)
		Expect(dashboard.Spec.Rules[0].Host).To(Equal("ray-dashboard-demo-" + ns + ".ai.example.org"))
		Expect(dashboard.Spec.IngressClassName).To(HaveValue(Equal("edge")))
		env.WaitDeleted(ctx, route, policy, authority)
		env.WaitIdle(other.User, quiet, specTimeout)
		env.ExpectIdle(other.User, quiet)
		other.Stop(ctx)
	}, NodeTimeout(2*specTimeout))
})
