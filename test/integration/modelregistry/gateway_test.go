package modelregistry_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	gatewayDomain  = "gateway.example.com"
	namespaceLabel = "modelregistry.opendatahub.io/namespace"
)

var (
	httpRouteKind = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	grantKind     = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1beta1", Kind: "ReferenceGrant"}
)

// stopManager stops the shared manager. After the spec it is started again, and its webhooks respond.
func stopManager(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(waitForWebhooks, NodeTimeout(specTimeout))
	manager.StopTemporarily(ctx)
}

// waitForWebhooks waits until the webhooks of the manager respond, which are unavailable while it starts.
func waitForWebhooks(ctx SpecContext) {
	GinkgoHelper()
	env.WaitAdmitted(ctx, newRegistry(metav1.NamespaceDefault, "probe"))
}

// startGatewayManager starts a manager in gateway mode with additional environment variables.
func startGatewayManager(ctx context.Context, variables ...string) *framework.Manager {
	GinkgoHelper()
	options := managerOptions()
	options.Name, options.Env = "gateway", append(append(options.Env, "GATEWAY_DOMAIN="+gatewayDomain), variables...)
	return env.StartManager(ctx, options)
}

func httpRouteOf(registry *v1beta1.ModelRegistry) *unstructured.Unstructured {
	return framework.Unstructured(httpRouteKind, routeNamespace, "model-registry-"+registry.Name)
}

func grantOf(registry *v1beta1.ModelRegistry) *unstructured.Unstructured {
	return framework.Unstructured(grantKind, registry.Namespace, "allow-gateway-httproutes-"+registry.Name)
}

// sharedGrant returns the ReferenceGrant that the legacy operator created for all Services of a namespace.
func sharedGrant(namespace string) *unstructured.Unstructured {
	grant := framework.Unstructured(grantKind, namespace, "allow-gateway-httproutes")
	grant.SetLabels(map[string]string{"component": "model-registry", "app.kubernetes.io/component": "model-registry", "app.kubernetes.io/part-of": "model-registry",
		"app.kubernetes.io/created-by": "model-registry-operator", "app.kubernetes.io/managed-by": "model-registry-operator"})
	grant.Object["spec"] = map[string]any{
		"from": []any{map[string]any{"group": httpRouteKind.Group, "kind": "HTTPRoute", "namespace": routeNamespace}},
		"to":   []any{map[string]any{"group": "", "kind": "Service"}},
	}
	return grant
}

// backendOf returns the only backend of an HTTPRoute.
func backendOf(route *unstructured.Unstructured) any {
	rules, _, err := unstructured.NestedSlice(route.Object, "spec", "rules")
	Expect(err).NotTo(HaveOccurred())
	Expect(rules).To(HaveLen(1))
	rule, ok := rules[0].(map[string]any)
	Expect(ok).To(BeTrue())
	backends, _, err := unstructured.NestedSlice(rule, "backendRefs")
	Expect(err).NotTo(HaveOccurred())
	Expect(backends).To(HaveLen(1))
	return backends[0]
}

var _ = Describe("Gateway mode", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "gateway") }, NodeTimeout(specTimeout))

	withRESTRoute := func(registry *v1beta1.ModelRegistry) { registry.Spec.Rest.ServiceRoute = v1beta1.RouteEnabled }

	It("publishes in addition to the Routes, and its HTTPRoute is deleted when it is disabled [modelregistry-38] [modelregistry-39] [modelregistry-40] [D25]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace, withRESTRoute))
		routes := []*unstructured.Unstructured{framework.Unstructured(routeKind, namespace, registry.Name+"-https"), framework.Unstructured(routeKind, namespace, registry.Name+"-http")}
		originals := []*unstructured.Unstructured{env.Live(ctx, routes[0]), env.Live(ctx, routes[1])}
		stopManager(ctx)
		gatewayManager := startGatewayManager(ctx)

		route, grant := httpRouteOf(registry), grantOf(registry)
		env.WaitFor(ctx, route, nil)
		Expect(backendOf(route)).To(Equal(map[string]any{
			"group": "", "kind": "Service", "name": registry.Name, "namespace": namespace, "port": int64(8443), "weight": int64(1),
		}))
		Expect(route.GetLabels()).To(HaveKeyWithValue(namespaceLabel, namespace))
		env.WaitFor(ctx, grant, nil)
		Expect(field(grant, "spec", "to")).To(Equal([]any{map[string]any{"group": "", "kind": "Service", "name": registry.Name}}), "[D26]")
		Expect(field(grant, "spec", "from")).To(Equal([]any{map[string]any{"group": httpRouteKind.Group, "kind": "HTTPRoute", "namespace": routeNamespace}}))
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(registry.Status.Hosts).To(Equal([]string{
				gatewayDomain + "/model-registry/" + registry.Name, registry.Name + "-rest." + domain,
				registry.Name + "." + namespace + ".svc.cluster.local", registry.Name + "." + namespace, registry.Name,
			}))
		})
		service := child(registry, &corev1.Service{}, "")
		env.Get(ctx, service)
		Expect(service.Annotations).To(HaveKeyWithValue("routing.opendatahub.io/external-address-rest", gatewayDomain+"/model-registry/"+registry.Name))
		for i, r := range routes {
			live := env.Live(ctx, r)
			Expect(live.GetUID()).To(Equal(originals[i].GetUID()))
			Expect(field(live, "spec")).To(Equal(field(originals[i], "spec")))
		}
		single := newRegistry(env.Namespace(ctx, "single"), namespace+"-s")
		waitForWebhooks(ctx)
		createReady(ctx, single)
		Expect(env.Exists(ctx, framework.Unstructured(routeKind, single.Namespace, single.Name+"-http"))).To(BeFalse())
		env.Get(ctx, httpRouteOf(single))
		env.WaitIdle(gatewayManager.User, idlePeriod, specTimeout)

		gatewayManager.Stop(ctx)
		manager.Restart(ctx)
		env.WaitDeleted(ctx, route, grant, httpRouteOf(single), grantOf(single))
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(registry.Status.Hosts).To(HaveLen(4))
			g.Expect(registry.Status.Hosts[0]).To(Equal(registry.Name + "-rest." + domain))
		})
		waitAvailable(ctx, registry)
		for i, r := range routes {
			Expect(env.Live(ctx, r).GetUID()).To(Equal(originals[i].GetUID()))
		}
	}, NodeTimeout(2*specTimeout))

	It("that was disabled before the take-over leaves an HTTPRoute, which is deleted with its registry [modelregistry-40]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace))
		route := httpRouteOf(registry)
		route.SetLabels(map[string]string{"app": registry.Name, "component": "model-registry", "app.kubernetes.io/created-by": "model-registry-operator"})
		route.Object["spec"] = map[string]any{}
		other := route.DeepCopy()
		other.SetName(route.GetName() + "-other")
		create(ctx, route, other)
		DeferCleanup(func(ctx SpecContext) { env.Delete(ctx, other) }, NodeTimeout(specTimeout))
		env.Delete(ctx, registry)
		env.WaitDeleted(ctx, route)
		env.Get(ctx, other)
	}, NodeTimeout(specTimeout))

	It("deletes the legacy ReferenceGrant for all Services when each registry has its own [D26]", func(ctx SpecContext) {
		registry := createReady(ctx, newRegistry(namespace, namespace))
		pausedRegistry := newRegistry(namespace, namespace+"-2", func(registry *v1beta1.ModelRegistry) {
			registry.Annotations = map[string]string{pausedAnnotation: "true"}
		})
		create(ctx, proxyCertificate(pausedRegistry), pausedRegistry)
		env.WaitForCondition(ctx, pausedRegistry, "Paused", metav1.ConditionTrue, "")
		otherNamespace := env.Namespace(ctx, "theirs")
		shared, foreign := sharedGrant(namespace), sharedGrant(otherNamespace)
		foreign.SetLabels(map[string]string{"app.kubernetes.io/created-by": "ann"})
		legacyRoute := httpRouteOf(pausedRegistry)
		legacyRoute.SetLabels(map[string]string{"app": pausedRegistry.Name, "component": "model-registry", "app.kubernetes.io/created-by": "model-registry-operator"})
		legacyRoute.Object["spec"] = map[string]any{"rules": []any{map[string]any{
			"backendRefs": []any{map[string]any{"name": pausedRegistry.Name, "namespace": namespace, "port": int64(8443)}},
		}}}
		create(ctx, shared, foreign, legacyRoute)
		otherRegistry := createReady(ctx, newRegistry(otherNamespace, otherNamespace))
		stopManager(ctx)
		gatewayManager := startGatewayManager(ctx)
		env.WaitFor(ctx, grantOf(registry), nil)
		env.WaitFor(ctx, grantOf(otherRegistry), nil)
		env.WaitIdle(gatewayManager.User, idlePeriod, specTimeout)
		env.Get(ctx, shared) // the paused registry needs it

		waitForWebhooks(ctx)
		env.SetAnnotation(ctx, pausedRegistry, pausedAnnotation, nil)
		env.WaitFor(ctx, grantOf(pausedRegistry), nil)
		env.WaitDeleted(ctx, shared)
		env.Get(ctx, foreign) // the legacy operator did not create it
		waitAvailable(ctx, pausedRegistry)
	}, NodeTimeout(2*specTimeout))

	It("that is disabled deletes the legacy ReferenceGrant", func(ctx SpecContext) {
		shared := sharedGrant(namespace)
		create(ctx, shared)
		createReady(ctx, newRegistry(namespace, namespace))
		env.WaitDeleted(ctx, shared)
	}, NodeTimeout(specTimeout))

	It("gives a cluster-scoped name to only one registry, even without webhooks [D30]", func(ctx SpecContext) {
		stopManager(ctx)
		other := startGatewayManager(ctx, "ENABLE_WEBHOOKS=false")
		env.DeleteTemporarily(ctx,
			&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "model-registry-operator-mutating-webhook-configuration"}},
			&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "model-registry-operator-validating-webhook-configuration"}})
		registry := createReady(ctx, newRegistry(namespace, namespace))
		var kept []*unstructured.Unstructured
		for _, o := range []*unstructured.Unstructured{usersGroup(registry), httpRouteOf(registry), framework.Unstructured(bindingKind, "", registry.Name+"-auth-delegator")} {
			env.WaitFor(ctx, o, nil)
			kept = append(kept, o)
		}
		second := newRegistry(env.Namespace(ctx, "second"), registry.Name)
		create(ctx, passwordSecret(second.Namespace, "first"), proxyCertificate(second), second)
		env.WaitFor(ctx, second, func(g Gomega) {
			c := framework.FindCondition(second.Status.Conditions, "Available")
			g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(c.Message).To(ContainSubstring("belongs to ModelRegistry " + namespace + "/" + registry.Name))
		})
		env.WaitIdle(other.User, idlePeriod, specTimeout)
		server := child(second, &appsv1.Deployment{}, "")
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(server), server)).To(MatchError(apierrors.IsNotFound, "is not found"), "without its ClusterRoleBinding the proxy could not authenticate callers")
		expectUnchanged := func() {
			GinkgoHelper()
			for _, o := range kept {
				live := env.Live(ctx, o)
				Expect(live.GetResourceVersion()).To(Equal(o.GetResourceVersion()), "%s %s", o.GetKind(), o.GetName())
				Expect(live.GetLabels()).To(HaveKeyWithValue(namespaceLabel, namespace), "%s %s", o.GetKind(), o.GetName())
			}
		}
		expectUnchanged()
		env.Delete(ctx, second)
		expectUnchanged()
	}, NodeTimeout(2*specTimeout))
})
