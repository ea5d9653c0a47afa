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
	gatewayDomain = "gateway.example.com"
	namespaceMark = "modelregistry.opendatahub.io/namespace"
)

var (
	httpRouteKind = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	grantKind     = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1beta1", Kind: "ReferenceGrant"}
)

// stopManager stops the shared manager until the end of the spec, then waits until its webhooks respond.
func stopManager(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(waitForWebhooks, NodeTimeout(specTimeout))
	manager.StopTemporarily(ctx)
}

// waitForWebhooks waits until the webhooks of the manager respond; they are unavailable during its start.
func waitForWebhooks(ctx SpecContext) {
	GinkgoHelper()
	env.WaitAdmitted(ctx, registry(metav1.NamespaceDefault, "probe"))
}

// behindGateway runs a manager in gateway mode.
func behindGateway(ctx context.Context, more ...string) *framework.Manager {
	GinkgoHelper()
	options := managerOptions()
	options.Name, options.Env = "gateway", append(append(options.Env, "GATEWAY_DOMAIN="+gatewayDomain), more...)
	other := env.StartManager(ctx, options)
	return other
}

func httpRouteOf(m *v1beta1.ModelRegistry) *unstructured.Unstructured {
	return framework.Unstructured(httpRouteKind, routeNamespace, "model-registry-"+m.Name)
}

func grantOf(m *v1beta1.ModelRegistry) *unstructured.Unstructured {
	return framework.Unstructured(grantKind, m.Namespace, "allow-gateway-httproutes-"+m.Name)
}

// sharedGrant is the ReferenceGrant that the replaced operator created for all Services of a namespace.
func sharedGrant(namespace string) *unstructured.Unstructured {
	g := framework.Unstructured(grantKind, namespace, "allow-gateway-httproutes")
	g.SetLabels(map[string]string{"component": "model-registry", "app.kubernetes.io/component": "model-registry", "app.kubernetes.io/part-of": "model-registry",
		"app.kubernetes.io/created-by": "model-registry-operator", "app.kubernetes.io/managed-by": "model-registry-operator"})
	g.Object["spec"] = map[string]any{
		"from": []any{map[string]any{"group": httpRouteKind.Group, "kind": "HTTPRoute", "namespace": routeNamespace}},
		"to":   []any{map[string]any{"group": "", "kind": "Service"}},
	}
	return g
}

// backend returns the first backend of the first rule of an HTTPRoute.
func backend(route *unstructured.Unstructured) any {
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

	twoRoutes := func(m *v1beta1.ModelRegistry) { m.Spec.Rest.ServiceRoute = v1beta1.RouteEnabled }

	It("publishes in addition to the Routes, and its HTTPRoute is deleted when it is disabled [modelregistry-38] [modelregistry-39] [modelregistry-40] [D25]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace, twoRoutes))
		routes := []*unstructured.Unstructured{framework.Unstructured(routeKind, namespace, m.Name+"-https"), framework.Unstructured(routeKind, namespace, m.Name+"-http")}
		before := []*unstructured.Unstructured{env.Live(ctx, routes[0]), env.Live(ctx, routes[1])}
		stopManager(ctx)
		other := behindGateway(ctx)

		route, grant := httpRouteOf(m), grantOf(m)
		env.WaitFor(ctx, route, nil)
		Expect(backend(route)).To(Equal(map[string]any{
			"group": "", "kind": "Service", "name": m.Name, "namespace": namespace, "port": int64(8443), "weight": int64(1),
		}))
		Expect(route.GetLabels()).To(HaveKeyWithValue(namespaceMark, namespace))
		env.WaitFor(ctx, grant, nil)
		Expect(field(grant, "spec", "to")).To(Equal([]any{map[string]any{"group": "", "kind": "Service", "name": m.Name}}), "[D26]")
		Expect(field(grant, "spec", "from")).To(Equal([]any{map[string]any{"group": httpRouteKind.Group, "kind": "HTTPRoute", "namespace": routeNamespace}}))
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(m.Status.Hosts).To(Equal([]string{
				gatewayDomain + "/model-registry/" + m.Name, m.Name + "-rest." + domain,
				m.Name + "." + namespace + ".svc.cluster.local", m.Name + "." + namespace, m.Name,
			}))
		})
		s := child(m, &corev1.Service{}, "")
		env.Get(ctx, s)
		Expect(s.Annotations).To(HaveKeyWithValue("routing.opendatahub.io/external-address-rest", gatewayDomain+"/model-registry/"+m.Name))
		for i, r := range routes {
			now := env.Live(ctx, r)
			Expect(now.GetUID()).To(Equal(before[i].GetUID()))
			Expect(field(now, "spec")).To(Equal(field(before[i], "spec")))
		}
		single := registry(env.Namespace(ctx, "single"), namespace+"-s")
		waitForWebhooks(ctx)
		createReady(ctx, single)
		Expect(env.Exists(ctx, framework.Unstructured(routeKind, single.Namespace, single.Name+"-http"))).To(BeFalse())
		env.Get(ctx, httpRouteOf(single))
		env.WaitIdle(other.User, quiet, specTimeout)

		other.Stop(ctx)
		manager.Restart(ctx)
		env.WaitDeleted(ctx, route, grant, httpRouteOf(single), grantOf(single))
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(m.Status.Hosts).To(HaveLen(4))
			g.Expect(m.Status.Hosts[0]).To(Equal(m.Name + "-rest." + domain))
		})
		waitAvailable(ctx, m)
		for i, r := range routes {
			Expect(env.Live(ctx, r).GetUID()).To(Equal(before[i].GetUID()))
		}
	}, NodeTimeout(2*specTimeout))

	It("that was disabled before the take-over leaves an HTTPRoute, which is deleted with its registry [modelregistry-40]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace))
		route := httpRouteOf(m)
		route.SetLabels(map[string]string{"app": m.Name, "component": "model-registry", "app.kubernetes.io/created-by": "model-registry-operator"})
		route.Object["spec"] = map[string]any{}
		other := route.DeepCopy()
		other.SetName(route.GetName() + "-other")
		create(ctx, route, other)
		DeferCleanup(func(ctx SpecContext) { env.Delete(ctx, other) }, NodeTimeout(specTimeout))
		env.Delete(ctx, m)
		env.WaitDeleted(ctx, route)
		env.Get(ctx, other)
	}, NodeTimeout(specTimeout))

	It("deletes the legacy ReferenceGrant for all Services once every registry has its own [D26]", func(ctx SpecContext) {
		m := createReady(ctx, registry(namespace, namespace))
		asleep := registry(namespace, namespace+"-2", func(m *v1beta1.ModelRegistry) { m.Annotations = map[string]string{paused: "true"} })
		create(ctx, certificate(asleep), asleep)
		env.WaitForCondition(ctx, asleep, "Paused", metav1.ConditionTrue, "")
		otherNamespace := env.Namespace(ctx, "theirs")
		shared, foreign := sharedGrant(namespace), sharedGrant(otherNamespace)
		foreign.SetLabels(map[string]string{"app.kubernetes.io/created-by": "ann"})
		published := httpRouteOf(asleep) // by the replaced operator
		published.SetLabels(map[string]string{"app": asleep.Name, "component": "model-registry", "app.kubernetes.io/created-by": "model-registry-operator"})
		published.Object["spec"] = map[string]any{"rules": []any{map[string]any{
			"backendRefs": []any{map[string]any{"name": asleep.Name, "namespace": namespace, "port": int64(8443)}},
		}}}
		create(ctx, shared, foreign, published)
		neighbour := createReady(ctx, registry(otherNamespace, otherNamespace))
		stopManager(ctx)
		other := behindGateway(ctx)
		env.WaitFor(ctx, grantOf(m), nil)
		env.WaitFor(ctx, grantOf(neighbour), nil)
		env.WaitIdle(other.User, quiet, specTimeout)
		env.Get(ctx, shared) // the paused registry needs it

		waitForWebhooks(ctx)
		env.SetAnnotation(ctx, asleep, paused, nil)
		env.WaitFor(ctx, grantOf(asleep), nil)
		env.WaitDeleted(ctx, shared)
		env.Get(ctx, foreign) // the replaced operator did not create it
		waitAvailable(ctx, asleep)
	}, NodeTimeout(2*specTimeout))

	It("that is disabled deletes the legacy ReferenceGrant", func(ctx SpecContext) {
		shared := sharedGrant(namespace)
		create(ctx, shared)
		createReady(ctx, registry(namespace, namespace))
		env.WaitDeleted(ctx, shared)
	}, NodeTimeout(specTimeout))

	It("gives a cluster-scoped name to one registry only if no webhook rejected the other [D30]", func(ctx SpecContext) {
		stopManager(ctx)
		other := behindGateway(ctx, "ENABLE_WEBHOOKS=false")
		env.DeleteTemporarily(ctx,
			&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "model-registry-operator-mutating-webhook-configuration"}},
			&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "model-registry-operator-validating-webhook-configuration"}})
		m := createReady(ctx, registry(namespace, namespace))
		var kept []*unstructured.Unstructured
		for _, o := range []*unstructured.Unstructured{group(m), httpRouteOf(m), framework.Unstructured(bindingKind, "", m.Name+"-auth-delegator")} {
			env.WaitFor(ctx, o, nil)
			kept = append(kept, o)
		}
		second := registry(env.Namespace(ctx, "second"), m.Name)
		create(ctx, password(second.Namespace, "first"), certificate(second), second)
		env.WaitFor(ctx, second, func(g Gomega) {
			c := framework.FindCondition(second.Status.Conditions, "Available")
			g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(c.Message).To(ContainSubstring("belongs to ModelRegistry " + namespace + "/" + m.Name))
		})
		env.WaitIdle(other.User, quiet, specTimeout)
		server := child(second, &appsv1.Deployment{}, "")
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(server), server)).To(MatchError(apierrors.IsNotFound, "is not found"), "its proxy could not authenticate callers")
		unchanged := func() {
			GinkgoHelper()
			for _, o := range kept {
				now := env.Live(ctx, o)
				Expect(now.GetResourceVersion()).To(Equal(o.GetResourceVersion()), "%s %s", o.GetKind(), o.GetName())
				Expect(now.GetLabels()).To(HaveKeyWithValue(namespaceMark, namespace), "%s %s", o.GetKind(), o.GetName())
			}
		}
		unchanged()
		env.Delete(ctx, second)
		unchanged()
	}, NodeTimeout(2*specTimeout))
})
