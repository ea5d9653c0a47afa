package plain_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// newUnstructured returns an object of a kind that has no Go type here.
func newUnstructured(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	return framework.Unstructured(kind, namespace, name)
}

func ingress() *networkingv1.Ingress { return &networkingv1.Ingress{ObjectMeta: objectMeta("mlflow")} }

// startManagerWith starts a manager with additional environment variables. The caller has stopped the shared one.
func startManagerWith(ctx context.Context, name string, variables ...string) *framework.Manager {
	GinkgoHelper()
	options := managerOptions()
	options.Name, options.Env = name, append(options.Env, variables...)
	return env.StartManager(ctx, options)
}

var _ = Describe("The HTTPRoute or Ingress of MLflow", Serial, func() {
	It("is created for the exposure that is configured, and deleted when another one is configured", func(ctx SpecContext) {
		mlflow := newMLflow()
		create(ctx, mlflow)
		env.WaitExists(ctx, httpRoute())
		manager.StopTemporarily(ctx)

		By("exposing through a Gateway that verifies the certificate of the server")
		gatewayManager := startManagerWith(ctx, "gateway", "EXPOSURE=gateway")
		policy, caConfigMap, secret := newUnstructured(capability.BackendTLSPolicy, "mlflow-ca"), &corev1.ConfigMap{ObjectMeta: objectMeta("mlflow-ca")}, certificateSecret()
		env.WaitExists(ctx, policy)
		env.WaitExists(ctx, caConfigMap)
		env.Get(ctx, secret)
		Expect(caConfigMap.Data).To(HaveKeyWithValue("ca.crt", string(secret.Data["ca.crt"])))
		hostname, _, _ := unstructured.NestedString(policy.Object, "spec", "validation", "hostname")
		Expect(hostname).To(Equal("mlflow.opendatahub.svc"))
		monitor := newUnstructured(capability.ServiceMonitor, "mlflow-metrics-monitor")
		env.Get(ctx, monitor)
		Expect(monitor.Object["spec"]).To(HaveKeyWithValue("endpoints", ConsistOf(HaveKeyWithValue("tlsConfig", HaveKeyWithValue("serverName", "mlflow.opendatahub.svc")))))
		env.WaitIdle(gatewayManager.User, idlePeriod, specTimeout)
		env.ExpectIdle(gatewayManager.User, idlePeriod)

		By("deleting the Secret of the certificate: Gateways trust pods with the old and with the new certificate")
		previous := certificateSecret()
		env.Get(ctx, previous)
		Expect(env.Admin.Delete(ctx, previous)).To(Succeed())
		Eventually(func(g Gomega) {
			secret = certificateSecret()
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(caConfigMap), caConfigMap)).To(Succeed())
			g.Expect(caConfigMap.Data["ca.crt"]).To(Equal(string(secret.Data["ca.crt"]) + string(previous.Data["ca.crt"])))
			g.Expect(secret.UID).NotTo(Equal(previous.UID))
		}).WithContext(ctx).Should(Succeed())
		env.WaitIdle(gatewayManager.User, idlePeriod, specTimeout)
		gatewayManager.Stop(ctx)

		By("exposing through an Ingress")
		ingressManager := startManagerWith(ctx, "ingress", "EXPOSURE=ingress", "INGRESS_DOMAIN=apps.example.org", "INGRESS_CLASS=edge")
		env.WaitExists(ctx, ingress())
		for _, o := range []client.Object{httpRoute(), policy, caConfigMap} {
			env.WaitDeleted(ctx, o)
		}
		env.WaitFor(ctx, mlflow, func(g Gomega) { g.Expect(mlflow.Status.URL).To(Equal("https://mlflow.apps.example.org/mlflow")) })
		publishedIngress := ingress()
		env.Get(ctx, publishedIngress)
		Expect(publishedIngress.Spec.Rules[0].Host).To(Equal("mlflow.apps.example.org"))
		Expect(publishedIngress.Spec.IngressClassName).To(HaveValue(Equal("edge")))
		Expect(metav1.IsControlledBy(publishedIngress, mlflow)).To(BeTrue())
		env.WaitIdle(ingressManager.User, idlePeriod, specTimeout)
		env.ExpectIdle(ingressManager.User, idlePeriod)
		ingressManager.Stop(ctx)

		By("returning to the default exposure")
		manager.Restart(ctx)
		env.WaitDeleted(ctx, ingress())
		env.WaitExists(ctx, httpRoute())
	}, NodeTimeout(2*specTimeout))
})

var _ = Describe("A Gateway API without timeouts", Serial, func() {
	It("receives HTTPRoutes without timeouts, applied once", func(ctx SpecContext) {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "httproutes.gateway.networking.k8s.io"}}
		env.Get(ctx, crd)
		original := crd.DeepCopy().Spec
		DeferCleanup(func(ctx SpecContext) {
			env.Get(ctx, crd)
			crd.Spec = original
			Expect(env.Admin.Update(ctx, crd)).To(Succeed())
			manager.Restart(ctx) // the manager omits timeouts until it restarts
		}, NodeTimeout(specTimeout))
		for _, version := range crd.Spec.Versions {
			rule := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["rules"].Items.Schema
			Expect(rule.Properties).To(HaveKey("timeouts"))
			delete(rule.Properties, "timeouts")
		}
		Expect(env.Admin.Update(ctx, crd)).To(Succeed())
		Eventually(func() error { // the API server uses a changed schema with a delay
			probe := newUnstructured(capability.HTTPRoute, "probe")
			Expect(unstructured.SetNestedSlice(probe.Object, []any{map[string]any{"timeouts": map[string]any{"request": "0s"}}}, "spec", "rules")).To(Succeed())
			return env.Admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(probe), client.FieldOwner("probe"), client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring("timeouts")))

		mlflow := createReady(ctx, newMLflow())
		publishedRoute := httpRoute()
		env.Get(ctx, publishedRoute)
		Expect(publishedRoute.Object["spec"]).To(HaveKeyWithValue("rules", HaveEach(Not(HaveKey("timeouts")))))
		Expect(mlflow.Status.URL).NotTo(BeEmpty())
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)

		By("restarting the manager")
		manager.Restart(ctx)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)
		routeAfterRestart := httpRoute()
		env.Get(ctx, routeAfterRestart)
		Expect(routeAfterRestart.GetUID()).To(Equal(publishedRoute.GetUID()))
		Expect(routeAfterRestart.GetGeneration()).To(Equal(publishedRoute.GetGeneration()), "the route was written again")
	}, NodeTimeout(2*specTimeout))
})
