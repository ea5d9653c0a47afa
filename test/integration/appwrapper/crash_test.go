package appwrapper_test

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// crashTimeout bounds a scenario that runs once for each write of the manager.
const crashTimeout = 12 * time.Minute

var _ = Describe("A manager that is killed after any write", Serial, func() {
	for _, run := range []struct {
		title, image string
		end          awv1beta2.AppWrapperPhase
		// retries is the expected value in the status, creations the expected number for each component.
		retries, creations int
	}{
		{"brings a workload to success and cleans up", runningImage, awv1beta2.PhaseSucceeded, 0, 1},
		{"retries a workload once, and then fails it", failingImage, awv1beta2.PhaseFailed, 1, 2},
	} {
		It(run.title, func(ctx SpecContext) {
			ns := env.Namespace(ctx, "killed")
			crasher := env.StartCrasher(ctx, manager, specTimeout)
			var aw *awv1beta2.AppWrapper
			var start framework.AuditPosition
			count := 0
			begin := func() {
				count++
				start = env.AuditPosition()
				service := fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: front-%d}, spec: {selector: {app: a}, ports: [{port: 80}]}}`, count)
				aw = create(ctx, wrap(ns, fmt.Sprintf("aw-%d", count), []string{service, job(fmt.Sprintf("job-%d", count), run.image, 2)},
					withAnnotations("failureGracePeriodDuration", "0s", "retryPausePeriodDuration", "0s", "retryLimit", "1", "successTTLDuration", "1s")))
			}
			done := func(g Gomega) {
				g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(aw), aw)).To(Succeed())
				g.Expect(aw.Status.Phase).To(Equal(run.end))
				hasConditions(aw, "QuotaReserved=False", "ResourcesDeployed=False")(g)
			}
			crashes := crasher.CrashAfterEvery(ctx, begin, done, func(write int) {
				Expect(aw.Status.Retries).To(BeEquivalentTo(run.retries), "write %d", write)
				Expect(podsOf(ctx, aw)).To(BeEmpty(), "write %d", write)
				for _, resource := range []string{"jobs", "services"} {
					created := env.Since(start).ByUser(manager.User).ForResource(resource).Where(func(e framework.Entry) bool {
						return e.Verb == "create" && e.Code == http.StatusCreated && e.Namespace == ns
					})
					Expect(created).To(HaveLen(run.creations), "write %d: %s", write, created)
				}
			})
			Expect(crashes).To(BeNumerically(">=", 8))
			AddReportEntry("crashes", crashes)
		}, SpecTimeout(crashTimeout))
	}
})
