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

// lease is a lease duration that a leader survives without CPU time for seconds.
const lease = 10 * time.Second

// elected returns the leader election flags of a replica with the given lease duration.
func elected(valid time.Duration) []string {
	return []string{
		"--leader-elect", "--leader-elect-lease-duration=" + valid.String(), "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=1s",
	}
}

func replica(ctx context.Context, name string, valid time.Duration) *framework.Manager {
	GinkgoHelper()
	return start(ctx, framework.ManagerOptions{Name: name, Args: elected(valid)})
}

// pod starts a manager with the flags and POD_NAME of the Deployment for OpenShift, whose Lease a restart on a busy machine does not outlast.
func pod(ctx context.Context, name string) *framework.Manager {
	GinkgoHelper()
	return start(ctx, framework.ManagerOptions{Name: name, Env: []string{"POD_NAME=" + name}, Args: []string{
		"--leader-elect", "--leader-elect-lease-duration=137s", "--leader-elect-renew-deadline=107s", "--leader-elect-retry-period=26s",
	}})
}

// office returns the Lease, or an empty Lease if none exists.
func office(ctx context.Context) *coordinationv1.Lease {
	GinkgoHelper()
	held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operands, Name: "odh-platform-operator"}}
	Expect(client.IgnoreNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(held), held))).To(Succeed())
	return held
}

// leader returns the holder of the Lease, "" if it has no holder.
func leader(ctx context.Context) string {
	GinkgoHelper()
	if holder := office(ctx).Spec.HolderIdentity; holder != nil {
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
	env.WaitIdle(user, quiet/2, specTimeout)
	return env.Since(start).ByUser(user).WithoutLeases().WithoutEvents().Writes()
}

var _ = Describe("Two replicas", func() {
	It("elect one leader; when it is killed, the other takes over", func(ctx SpecContext) {
		first := replica(ctx, "first", lease)
		m := mlflow(ctx)
		waitAvailable(ctx, first, m)
		Expect(leader(ctx)).NotTo(BeEmpty())
		before := leader(ctx)

		second := replica(ctx, "second", lease)
		Expect(deleteChild(ctx, second.User)).To(HaveLen(1), "one replica writes")
		Expect(leader(ctx)).To(Equal(before))

		first.Kill(ctx)
		Eventually(func() string { return leader(ctx) }).Should(And(Not(BeEmpty()), Not(Equal(before))))
		Expect(deleteChild(ctx, second.User)).To(HaveLen(1))
	}, NodeTimeout(specTimeout))

	It("hand over at once on exit: the leader releases its lease, which the other replica watches", func(ctx SpecContext) {
		longerThanTheSpec := []string{
			"--leader-elect", "--leader-elect-lease-duration=2h", "--leader-elect-renew-deadline=90m", "--leader-elect-retry-period=1h",
		}
		first := start(ctx, framework.ManagerOptions{Name: "first", Args: longerThanTheSpec})
		m := mlflow(ctx)
		waitAvailable(ctx, first, m)
		before := leader(ctx)
		second := start(ctx, framework.ManagerOptions{Name: "second", Args: longerThanTheSpec})
		first.Stop(ctx)
		Eventually(func() string { return leader(ctx) }).Should(And(Not(BeEmpty()), Not(Equal(before))))
		Expect(deleteChild(ctx, second.User)).To(HaveLen(1))
		second.Stop(ctx)
		Expect(leader(ctx)).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("keep the lease of a pod whose manager crashed: the restarted manager leads immediately", func(ctx SpecContext) {
		first := pod(ctx, "manager-0")
		waitAvailable(ctx, first, mlflow(ctx))
		Expect(leader(ctx)).To(Equal("manager-0"))
		first.Kill(ctx)
		lease := office(ctx)

		begin := env.AuditPosition()
		second := pod(ctx, "manager-1")
		Eventually(func() framework.Entries { return env.Since(begin).ByUser(second.User).Of("leases").Reads() }).ShouldNot(BeEmpty())
		Expect(env.Admin.Delete(ctx, policy())).To(Succeed())
		Expect(office(ctx).ResourceVersion).To(Equal(lease.ResourceVersion), "another pod waits")

		first.Restart(ctx)
		env.WaitFor(ctx, policy(), nil)
		end := lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
		Expect(time.Now()).To(BeTemporally("<", end), "the lease of the process that was killed had not ended")
		Expect(leader(ctx)).To(Equal("manager-0"))
		Expect(office(ctx).Spec.LeaseTransitions).To(Equal(lease.Spec.LeaseTransitions))
		Expect(metricsOf(ctx, second)).To(ContainSubstring(`leader_election_master_status{name="odh-platform-operator"} 0`))
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The listeners of a manager", func() {
	It("report liveness, readiness and metrics", func(ctx SpecContext) {
		manager := start(ctx, framework.ManagerOptions{})
		for _, page := range []string{"/healthz", "/readyz", "/readyz/capabilities"} {
			status, text := get(ctx, manager.HealthURL+page)
			Expect(status).To(Equal(http.StatusOK), "%s: %s", page, text)
		}
		status, _ := get(ctx, manager.HealthURL+"/readyz/nonsense")
		Expect(status).To(Equal(http.StatusNotFound))

		m := mlflow(ctx)
		const own = "a-name-that-only-users-know"
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"serviceAccountName": own}})
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
		Expect(strings.Contains(text, own)).To(BeFalse(), "a label names an object of a user")
	}, NodeTimeout(specTimeout))
})
