package plain_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// optional returns an object of a kind without a Go type.
func optional(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	return framework.Unstructured(kind, namespace, name)
}

func ingress() *networkingv1.Ingress { return &networkingv1.Ingress{ObjectMeta: object("mlflow")} }

func waitForObject(ctx context.Context, o client.Object) {
	GinkgoHelper()
	env.WaitExists(ctx, o)
}

func waitDeleted(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Eventually(func() bool { return apierrors.IsNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(o), o)) }).WithContext(ctx).Should(BeTrue(), "%T %s", o, o.GetName())
}

// startManagerWith runs a manager with a setting in place of the shared one.
func startManagerWith(ctx context.Context, name string, more ...string) *framework.Manager {
	GinkgoHelper()
	options := managerOptions()
	options.Name, options.Env = name, append(options.Env, more...)
	other := env.StartManager(ctx, options)
	return other
}

var _ = Describe("The HTTPRoute or Ingress of MLflow", Serial, func() {
	It("follows the setting, and objects of the previous setting are deleted", func(ctx SpecContext) {
		m := server()
		create(ctx, m)
		waitForObject(ctx, route())
		manager.StopTemporarily(ctx)

		By("exposing by a Gateway that verifies the server")
		other := startManagerWith(ctx, "gateway", "EXPOSURE=gateway")
		policy, authority, secret := optional(capability.BackendTLSPolicy, "mlflow-ca"), &corev1.ConfigMap{ObjectMeta: object("mlflow-ca")}, certificate()
		waitForObject(ctx, policy)
		waitForObject(ctx, authority)
		env.Get(ctx, secret)
		Expect(authority.Data).To(HaveKeyWithValue("ca.crt", string(secret.Data["ca.crt"])))
		hostname, _, _ := unstructured.NestedString(policy.Object, "spec", "validation", "hostname")
		Expect(hostname).To(Equal("mlflow.opendatahub.svc"))
		monitor := optional(capability.ServiceMonitor, "mlflow-metrics-monitor")
		env.Get(ctx, monitor)
		Expect(monitor.Object["spec"]).To(HaveKeyWithValue("endpoints", ConsistOf(HaveKeyWithValue("tlsConfig", HaveKeyWithValue("serverName", "mlflow.opendatahub.svc")))))
		env.WaitIdle(other.User, quiet, specTimeout)
		env.ExpectIdle(other.User, quiet)

		By("the Secret of its certificate being deleted: Gateways trust the pods that serve the old one, and those that serve the new one")
		old := certificate()
		env.Get(ctx, old)
		Expect(env.Admin.Delete(ctx, old)).To(Succeed())
		Eventually(func(g Gomega) {
			secret = certificate()
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(authority), authority)).To(Succeed())
			g.Expect(authority.Data["ca.crt"]).To(Equal(string(secret.Data["ca.crt"]) + string(old.Data["ca.crt"])))
			g.Expect(secret.UID).NotTo(Equal(old.UID))
		}).WithContext(ctx).Should(Succeed())
		env.WaitIdle(other.User, quiet, specTimeout)
		other.Stop(ctx)

		By("exposing by an Ingress")
		other = startManagerWith(ctx, "ingress", "EXPOSURE=ingress", "INGRESS_DOMAIN=apps.example.org", "INGRESS_CLASS=edge")
		waitForObject(ctx, ingress())
		for _, o := range []client.Object{route(), policy, authority} {
			waitDeleted(ctx, o)
		}
		env.WaitFor(ctx, m, func(g Gomega) { g.Expect(m.Status.URL).To(Equal("https://mlflow.apps.example.org/mlflow")) })
		published := ingress()
		env.Get(ctx, published)
		Expect(published.Spec.Rules[0].Host).To(Equal("mlflow.apps.example.org"))
		Expect(published.Spec.IngressClassName).To(HaveValue(Equal("edge")))
		Expect(metav1.IsControlledBy(published, m)).To(BeTrue())
		env.WaitIdle(other.User, quiet, specTimeout)
		env.ExpectIdle(other.User, quiet)
		other.Stop(ctx)

		By("returning to the default exposure")
		manager.Restart(ctx)
		waitDeleted(ctx, ingress())
		waitForObject(ctx, route())
	}, NodeTimeout(2*specTimeout))
})

var _ = Describe("A Gateway API without timeouts", Serial, func() {
	It("gets routes without timeouts, each written once", func(ctx SpecContext) {
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "httproutes.gateway.networking.k8s.io"}}
		env.Get(ctx, definition)
		whole := definition.DeepCopy().Spec
		DeferCleanup(func(ctx SpecContext) {
			env.Get(ctx, definition)
			definition.Spec = whole
			Expect(env.Admin.Update(ctx, definition)).To(Succeed())
			manager.Restart(ctx) // a running manager omits timeouts until it ends
		}, NodeTimeout(specTimeout))
		for _, version := range definition.Spec.Versions {
			rule := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["rules"].Items.Schema
			Expect(rule.Properties).To(HaveKey("timeouts"))
			delete(rule.Properties, "timeouts")
		}
		Expect(env.Admin.Update(ctx, definition)).To(Succeed())
		Eventually(func() error { // the API server serves a new schema with a delay
			probe := optional(capability.HTTPRoute, "probe")
			Expect(unstructured.SetNestedSlice(probe.Object, []any{map[string]any{"timeouts": map[string]any{"request": "0s"}}}, "spec", "rules")).To(Succeed())
			return env.Admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(probe), client.FieldOwner("probe"), client.DryRunAll)
		}).WithContext(ctx).Should(MatchError(ContainSubstring("timeouts")))

		m := createReady(ctx, server())
		published := route()
		env.Get(ctx, published)
		Expect(published.Object["spec"]).To(HaveKeyWithValue("rules", HaveEach(Not(HaveKey("timeouts")))))
		Expect(m.Status.URL).NotTo(BeEmpty())
		env.WaitIdle(manager.User, quiet, specTimeout)
		env.ExpectIdle(manager.User, quiet)

		By("restarting the manager")
		manager.Restart(ctx)
		env.WaitIdle(manager.User, quiet, specTimeout)
		env.ExpectIdle(manager.User, quiet)
		again := route()
		env.Get(ctx, again)
		Expect(again.GetUID()).To(Equal(published.GetUID()))
		Expect(again.GetGeneration()).To(Equal(published.GetGeneration()), "the Gateway writes the status, and only that changes")
	}, NodeTimeout(2*specTimeout))
})
