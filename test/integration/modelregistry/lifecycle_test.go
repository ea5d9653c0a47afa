package modelregistry_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("A registry", func() {
	It("becomes a running server behind a proxy, and says where it is [modelregistry-25] [modelregistry-30] [modelregistry-41]", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "registry")
		mark := env.Mark()
		m := ready(ctx, registry(namespace, namespace+"-a"))
		for _, c := range append(children(m), delegator(m), group(m)) {
			env.Get(ctx, c)
			Expect(c.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", "modelregistry"), "%T", c)
		}
		for _, c := range children(m) {
			env.Get(ctx, c)
			Expect(c.GetOwnerReferences()).To(HaveLen(1), "%T", c)
		}
		Expect(m.Status.Hosts).To(Equal([]string{
			m.Name + "-rest." + domain, m.Name + "." + namespace + ".svc.cluster.local", m.Name + "." + namespace, m.Name,
		}))
		env.Settle(manager.User, quiet, specTimeout)
		env.ExpectAtRest(manager.User, quiet)
		writes := env.Since(mark).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutEvents()
		GinkgoWriter.Println(writes)
		Expect(env.Since(mark).ByUser(manager.User).Where(func(e framework.Entry) bool { return e.Code == 403 })).To(BeEmpty())
	}, NodeTimeout(specTimeout))
})
