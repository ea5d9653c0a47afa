package modelcatalog_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
)

var _ = Describe("The egress of the catalog", func() {
	It("is restored whenever another client changes it [modelregistry-132]", func(ctx SpecContext) {
		w := onKubernetes
		ns := w.namespace(ctx)
		w.createReady(ctx, catalog(ns))
		closed, open := policy(ns, "model-catalog-postgres-egress"), policy(ns, "model-catalog-egress")
		w.Patch(ctx, closed, map[string]any{"spec": map[string]any{"egress": []any{map[string]any{}}}})
		w.WaitFor(ctx, closed, func(g Gomega) { g.Expect(closed.Spec.Egress).To(BeEmpty()) })
		Expect(closed.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeEgress))
		w.Patch(ctx, open, map[string]any{"spec": map[string]any{"egress": nil}})
		w.WaitFor(ctx, open, func(g Gomega) { g.Expect(open.Spec.Egress).To(Equal([]networkingv1.NetworkPolicyEgressRule{{}})) })
		w.waitIdle()
		w.ExpectIdle(w.manager.User, quiet)
	}, NodeTimeout(specTimeout))
})
