package gateways_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// publishedServer is a resource with its HTTPRoute and BackendTLSPolicy; policy is nil if the resource has none.
type publishedServer struct {
	publishedKind
	object, route, policy *unstructured.Unstructured
}

// expectReport waits for a Warning Event with the reason as its action and with the text if the kind reports by Event, otherwise for the
// condition RouteAccepted with the status, reason and text.
func (o publishedServer) expectReport(ctx context.Context, status, reason, text string) {
	GinkgoHelper()
	if o.reason != "" {
		Eventually(func() []string { return warnings(ctx, o.object, o.reason) }).WithContext(ctx).WithTimeout(waitTimeout).
			Should(ContainElement(And(HavePrefix(reason+" "), ContainSubstring(text))), o.object.GetKind())
		return
	}
	Eventually(func(g Gomega) {
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(o.object), o.object)).To(Succeed())
		g.Expect(routeAccepted(o.object)).To(And(HavePrefix(status+" "+reason+" "), ContainSubstring(text)), o.object.GetKind())
	}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
}

// waitForAccepted waits until the condition RouteAccepted is absent and the status contains the address. It does not wait for kinds that
// report by Event.
func (o publishedServer) waitForAccepted(ctx context.Context) {
	GinkgoHelper()
	if o.reason != "" {
		return
	}
	Eventually(func(g Gomega) {
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(o.object), o.object)).To(Succeed())
		g.Expect(routeAccepted(o.object)).To(BeEmpty())
		g.Expect(o.address == nil || o.address(o.object)).To(BeTrue(), "%s has no address", o.object.GetKind())
	}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
}

// setGatewayStatus sets the status of a route or policy like Envoy Gateway.
func setGatewayStatus(ctx context.Context, object *unstructured.Unstructured, accepted metav1.ConditionStatus, reason, message string) {
	GinkgoHelper()
	env.Get(ctx, object)
	list, ref := "parents", "parentRef"
	if object.GetKind() == capability.BackendTLSPolicy.Kind {
		list, ref = "ancestors", "ancestorRef"
	}
	condition := func(conditionType string, status metav1.ConditionStatus, reason, message string) any {
		return map[string]any{"type": conditionType, "status": string(status), "reason": reason, "message": message,
			"observedGeneration": object.GetGeneration(), "lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	env.Patch(ctx, object, map[string]any{"status": map[string]any{list: []any{map[string]any{
		ref:              map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "gateways", "name": framework.AbsentGateway},
		"controllerName": "gateway.envoyproxy.io/gatewayclass-controller",
		"conditions": []any{condition("Accepted", accepted, reason, message),
			condition("ResolvedRefs", metav1.ConditionTrue, "ResolvedRefs", "Resolved all the Object references for the Route")},
	}}}}, "status")
}

var _ = Describe("The status that a Gateway sets for a published server", Ordered, func() {
	var servers []publishedServer

	BeforeAll(func(ctx SpecContext) {
		for _, p := range publishedKinds() {
			namespace := p.namespace
			if namespace == "" {
				namespace = env.Namespace(ctx, "team")
			}
			o := publishedServer{publishedKind: p, object: p.object(namespace)}
			if p.reason == "RouteNotPublished" {
				env.SetLabel(ctx, framework.Unstructured(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", namespace), "modelmesh-enabled", "true")
				serving := framework.Sample("modelmesh_runtime_custom.yaml")
				serving.SetNamespace(namespace)
				serving.SetAnnotations(map[string]string{"enable-route": "true"})
				Expect(env.Admin.Create(ctx, serving)).To(Succeed())
			}
			Expect(env.Admin.Create(ctx, o.object)).To(Succeed())
			routeNamespace := p.routeNamespace
			if routeNamespace == "" {
				routeNamespace = namespace
			}
			o.route = framework.Unstructured(capability.HTTPRoute, routeNamespace, p.route)
			if p.policy != "" {
				o.policy = framework.Unstructured(capability.BackendTLSPolicy, namespace, p.policy)
			}
			servers = append(servers, o)
		}
		for _, o := range servers {
			env.WaitFor(ctx, o.route, nil)
			if o.policy != nil {
				env.WaitFor(ctx, o.policy, nil)
			}
		}
		DeferCleanup(func(ctx SpecContext) {
			for _, o := range servers {
				Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, o.object))).To(Succeed())
				env.WaitDeleted(ctx, o.object)
			}
		}, NodeTimeout(specTimeout))
	}, NodeTimeout(specTimeout))

	It("is reported as unknown if the Gateway does not exist, and the address is kept", func(ctx SpecContext) {
		for _, o := range servers {
			o.expectReport(ctx, "Unknown", "NotSeen", "check that Gateway gateways/"+framework.AbsentGateway+" exists")
			Expect(o.address == nil || o.address(o.object)).To(BeTrue(), "%s", o.object.GetKind())
		}
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("is reported as a rejection, and the address is removed until the Gateway accepts the route", func(ctx SpecContext) {
		for _, o := range servers {
			setGatewayStatus(ctx, o.route, metav1.ConditionFalse, "NotAllowedByListeners", "No listeners included by this parent ref allowed this attachment.")
		}
		for _, o := range servers {
			o.expectReport(ctx, "False", "NotAllowedByListeners", "No listeners included by this parent ref allowed this attachment.; let a listener")
			Expect(o.address != nil && o.address(o.object)).To(BeFalse(), "%s", o.object.GetKind())
		}
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)

		By("accepting the route")
		for _, o := range servers {
			setGatewayStatus(ctx, o.route, metav1.ConditionTrue, "Accepted", "Route is accepted")
		}
		for _, o := range servers {
			o.waitForAccepted(ctx)
		}
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("includes the BackendTLSPolicy of the server", func(ctx SpecContext) {
		for _, o := range servers {
			if o.policy != nil {
				setGatewayStatus(ctx, o.policy, metav1.ConditionFalse, "NoValidCACertificate", "no valid certificate in the ConfigMap")
			}
		}
		for _, o := range servers {
			if o.policy != nil {
				o.expectReport(ctx, "False", "NoValidCACertificate", "rejects BackendTLSPolicy")
				Expect(o.address != nil && o.address(o.object)).To(BeFalse(), "%s", o.object.GetKind())
			}
		}
		for _, o := range servers {
			if o.policy != nil {
				setGatewayStatus(ctx, o.policy, metav1.ConditionTrue, "Accepted", "Policy is accepted")
				o.waitForAccepted(ctx)
			}
		}
	}, NodeTimeout(specTimeout))
})
