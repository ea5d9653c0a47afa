package foundation

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// watchStartTimeout bounds the time from the creation of a CRD to the watch of its component.
const watchStartTimeout = 5 * time.Second

var _ = Describe("A component whose API is missing", func() {
	It("waits for the API without a request, starts after it appears, stops when it is removed, and waits again", func(ctx SpecContext) {
		startManager(ctx, framework.ManagerOptions{}).Stop(ctx) // installs the operator
		restore := env.DeleteCRD(ctx, mlflowCRD)
		begin := env.AuditPosition()
		manager := startManager(ctx, framework.ManagerOptions{})
		env.WaitIdle(manager.User, idlePeriod/2, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(otherRequests(begin, manager.User)).To(BeEmpty())

		for range 2 {
			begin = env.AuditPosition()
			restore(ctx)
			Eventually(func() framework.Entries {
				return env.Since(begin).ByUser(manager.User).ForResource("mlflows").Watches()
			}).WithContext(ctx).WithTimeout(watchStartTimeout).ShouldNot(BeEmpty())
			m := createMLflow(ctx)
			waitAvailable(ctx, manager, m)

			Expect(env.Admin.Delete(ctx, m)).To(Succeed())
			env.WaitDeleted(ctx, server())
			restore = env.DeleteCRD(ctx, mlflowCRD)
			manager.AwaitRestart(ctx)
			env.WaitIdle(manager.User, idlePeriod/2, specTimeout)
			env.ExpectIdle(manager.User, idlePeriod)
		}
		restore(ctx)
	}, NodeTimeout(2*specTimeout))
})
