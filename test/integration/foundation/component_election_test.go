package foundation

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// leaseDuration is long enough for a leader that gets no CPU time for some seconds.
const leaseDuration = 10 * time.Second

// electionFlags returns the leader election flags of a replica with the given lease duration.
func electionFlags(duration time.Duration) []string {
	return []string{
		"--leader-elect", "--leader-elect-lease-duration=" + duration.String(), "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=1s",
	}
}

func startReplica(ctx context.Context, name string, duration time.Duration) *framework.Manager {
	GinkgoHelper()
	return startManager(ctx, framework.ManagerOptions{Name: name, Args: electionFlags(duration)})
}

// startPod starts a manager with the flags and POD_NAME of the Deployment for OpenShift. The Lease outlasts a restart on a busy machine.
func startPod(ctx context.Context, name string) *framework.Manager {
	GinkgoHelper()
	return startManager(ctx, framework.ManagerOptions{Name: name, Env: []string{"POD_NAME=" + name}, Args: []string{
		"--leader-elect", "--leader-elect-lease-duration=137s", "--leader-elect-renew-deadline=107s", "--leader-elect-retry-period=26s",
	}})
}

// getLease returns the Lease, or an empty Lease if none exists.
func getLease(ctx context.Context) *coordinationv1.Lease {
	GinkgoHelper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "odh-platform-operator"}}
	Expect(client.IgnoreNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(lease), lease))).To(Succeed())
	return lease
}

// leader returns the holder of the Lease, "" if it has no holder.
func leader(ctx context.Context) string {
	GinkgoHelper()
	if holder := getLease(ctx).Spec.HolderIdentity; holder != nil {
		return *holder
	}
	return ""
}

// deleteChild deletes a child and returns the writes that recreated it.
func deleteChild(ctx context.Context, user string) framework.Entries {
	GinkgoHelper()
	start := env.AuditPosition()
	Expect(env.Admin.Delete(ctx, policy())).To(Succeed())
	env.WaitFor(ctx, policy(), nil)
	env.WaitIdle(user, idlePeriod/2, specTimeout)
	return env.Since(start).ByUser(user).WithoutLeases().WithoutEvents().Writes()
}

var _ = Describe("Two replicas", func() {
	It("elect one leader; when it is killed, the other takes over", func(ctx SpecContext) {
		first := startReplica(ctx, "first", leaseDuration)
		m := createMLflow(ctx)
		waitAvailable(ctx, first, m)
		Expect(leader(ctx)).NotTo(BeEmpty())
		previous := leader(ctx)

		second := startReplica(ctx, "second", leaseDuration)
		Expect(deleteChild(ctx, second.User)).To(HaveLen(1), "only one replica must write")
		Expect(leader(ctx)).To(Equal(previous))

		first.Kill(ctx)
		Eventually(func() string { return leader(ctx) }).Should(And(Not(BeEmpty()), Not(Equal(previous))))
		Expect(deleteChild(ctx, second.User)).To(HaveLen(1))
	}, NodeTimeout(specTimeout))

	It("hand over immediately on exit, because the leader releases its Lease, which the other replica watches", func(ctx SpecContext) {
		longLease := []string{
			"--leader-elect", "--leader-elect-lease-duration=2h", "--leader-elect-renew-deadline=90m", "--leader-elect-retry-period=1h",
		}
		first := startManager(ctx, framework.ManagerOptions{Name: "first", Args: longLease})
		m := createMLflow(ctx)
		waitAvailable(ctx, first, m)
		previous := leader(ctx)
		second := startManager(ctx, framework.ManagerOptions{Name: "second", Args: longLease})
		first.Stop(ctx)
		Eventually(func() string { return leader(ctx) }).Should(And(Not(BeEmpty()), Not(Equal(previous))))
		Expect(deleteChild(ctx, second.User)).To(HaveLen(1))
		second.Stop(ctx)
		Expect(leader(ctx)).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("keep the Lease of a pod whose manager crashed, so the restarted manager leads immediately", func(ctx SpecContext) {
		first := startPod(ctx, "manager-0")
		waitAvailable(ctx, first, createMLflow(ctx))
		Expect(leader(ctx)).To(Equal("manager-0"))
		first.Kill(ctx)
		lease := getLease(ctx)

		begin := env.AuditPosition()
		second := startPod(ctx, "manager-1")
		Eventually(func() framework.Entries { return env.Since(begin).ByUser(second.User).ForResource("leases").Reads() }).ShouldNot(BeEmpty())
		Expect(env.Admin.Delete(ctx, policy())).To(Succeed())
		Expect(getLease(ctx).ResourceVersion).To(Equal(lease.ResourceVersion), "another pod must wait")

		first.Restart(ctx)
		env.WaitFor(ctx, policy(), nil)
		end := lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
		Expect(time.Now()).To(BeTemporally("<", end), "the Lease of the killed process must not have expired")
		Expect(leader(ctx)).To(Equal("manager-0"))
		Expect(getLease(ctx).Spec.LeaseTransitions).To(Equal(lease.Spec.LeaseTransitions))
		Expect(metricsOf(ctx, second)).To(ContainSubstring(`leader_election_master_status{name="odh-platform-operator"} 0`))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The listeners of a manager", func() {
	It("report liveness, readiness and metrics", func(ctx SpecContext) {
		manager := startManager(ctx, framework.ManagerOptions{})
		for _, page := range []string{"/healthz", "/readyz", "/readyz/capabilities"} {
			status, text := httpGet(ctx, manager.HealthURL+page)
			Expect(status).To(Equal(http.StatusOK), "%s: %s", page, text)
		}
		status, _ := httpGet(ctx, manager.HealthURL+"/readyz/unknown")
		Expect(status).To(Equal(http.StatusNotFound))

		m := createMLflow(ctx)
		const serviceAccount = "a-name-that-only-users-know"
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"serviceAccountName": serviceAccount}})
		waitAvailable(ctx, manager, m)
		text := metricsOf(ctx, manager)
		for _, series := range []string{
			`odh_platform_conditions{component="mlflow",condition="Available",kind="MLflow",status="True"} 1`,
			`odh_platform_apply_writes_total{component="mlflow",kind="Deployment",verb="apply"}`,
			`odh_platform_apply_skipped_total{component="mlflow",kind="Deployment"}`,
			`controller_runtime_reconcile_total{controller="mlflow",result="success"}`,
			`workqueue_depth{`, `rest_client_requests_total{`,
		} {
			Expect(text).To(ContainSubstring(series))
		}
		Expect(strings.Contains(text, serviceAccount)).To(BeFalse(), "a label must not contain the name of an object of a user")
	}, NodeTimeout(specTimeout))
})
