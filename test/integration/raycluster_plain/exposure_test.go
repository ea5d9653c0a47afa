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

// startManagerWith starts a manager with environment variables. The caller has stopped the shared one.
func startManagerWith(ctx context.Context, name string, variables ...string) *framework.Manager {
	GinkgoHelper()
	o := options
	o.Name, o.Env = name, variables
	return env.StartManager(ctx, o)
}

var _ = Describe("The HTTPRoute or Ingress of a dashboard", Serial, func() {
	It("is created for the exposure that is configured, and deleted when another one is configured", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "exposed")
		rayCluster := create(ctx, newRayCluster(ns, "demo"), raycluster.AuthProxy)
		names := namesOf(rayCluster)
		manager.StopTemporarily(ctx)
		DeferCleanup(func(ctx SpecContext) { manager.Restart(ctx) }, NodeTimeout(specTimeout))

		By("exposing through a Gateway that verifies the certificate of the sidecar")
		second := startManagerWith(ctx, "gateway", "EXPOSURE=gateway", "GATEWAY_NAME=public", "GATEWAY_NAMESPACE=gateways")
		route, policy := framework.Unstructured(capability.HTTPRoute, rayCluster.GetNamespace(), names.Dashboard), framework.Unstructured(capability.BackendTLSPolicy, rayCluster.GetNamespace(), names.Dashboard+"-ca")
		caConfigMap, secret := &corev1.ConfigMap{ObjectMeta: objectMeta(rayCluster, names.Dashboard+"-ca")}, &corev1.Secret{ObjectMeta: objectMeta(rayCluster, names.ProxyTLS)}
		env.WaitExists(ctx, route, policy, caConfigMap)
		env.Get(ctx, secret)
		Expect(caConfigMap.Data).To(HaveKeyWithValue("ca.crt", string(secret.Data["ca.crt"])))
		Expect(route.Object["spec"]).To(HaveKeyWithValue("parentRefs", ConsistOf(And(HaveKeyWithValue("name", "public"), HaveKeyWithValue("namespace", "gateways")))))
		listed := &unstructured.UnstructuredList{} // codeflare-sdk lists HTTPRoutes in all namespaces
		listed.SetGroupVersionKind(route.GroupVersionKind())
		Expect(env.Admin.List(ctx, listed, client.MatchingLabels{"ray.io/cluster-name": "demo", "ray.io/cluster-namespace": ns})).To(Succeed())
		Expect(listed.Items).To(ConsistOf(HaveField("GetName()", route.GetName())))
		env.WaitIdle(second.User, idlePeriod, specTimeout)
		env.ExpectIdle(second.User, idlePeriod)

		By("restarting the manager, which keeps the objects")
		uid := policy.GetUID()
		second.Stop(ctx)
		second = startManagerWith(ctx, "gateway-restarted", "EXPOSURE=gateway", "GATEWAY_NAME=public", "GATEWAY_NAMESPACE=gateways")
		env.WaitIdle(second.User, idlePeriod, specTimeout)
		env.Get(ctx, policy)
		Expect(policy.GetUID()).To(Equal(uid))
		second.Stop(ctx)

		By("exposing through an Ingress")
		second = startManagerWith(ctx, "ingress", "EXPOSURE=ingress", "INGRESS_DOMAIN=ai.example.org", "INGRESS_CLASS=edge")
		dashboard := &networkingv1.Ingress{ObjectMeta: objectMeta(rayCluster, names.Dashboard)}
		env.WaitExists(ctx, dashboard)
		Expect(dashboard.Spec.Rules[0].Host).To(Equal("ray-dashboard-demo-" + ns + ".ai.example.org"))
		Expect(dashboard.Spec.IngressClassName).To(HaveValue(Equal("edge")))
		env.WaitDeleted(ctx, route, policy, caConfigMap)
		env.WaitIdle(second.User, idlePeriod, specTimeout)
		env.ExpectIdle(second.User, idlePeriod)
		second.Stop(ctx)
	}, NodeTimeout(2*specTimeout))
})
