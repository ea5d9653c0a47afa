package modelcatalog_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
)

var _ = Describe("The egress of the catalog", func() {
	It("is restored whenever another client changes it [modelregistry-132]", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		env.createReady(ctx, catalog(ns))
		databasePolicy, serverPolicy := policy(ns, "model-catalog-postgres-egress"), policy(ns, "model-catalog-egress")
		env.Patch(ctx, databasePolicy, map[string]any{"spec": map[string]any{"egress": []any{map[string]any{}}}})
		env.WaitFor(ctx, databasePolicy, func(g Gomega) { g.Expect(databasePolicy.Spec.Egress).To(BeEmpty()) })
		Expect(databasePolicy.Spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeEgress))
		env.Patch(ctx, serverPolicy, map[string]any{"spec": map[string]any{"egress": nil}})
		env.WaitFor(ctx, serverPolicy, func(g Gomega) {
			g.Expect(serverPolicy.Spec.Egress).To(Equal([]networkingv1.NetworkPolicyEgressRule{{}}))
		})
		env.waitIdle()
		env.ExpectIdle(env.manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))
})
