package appwrapper_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("Kinds of components", func() {
	It("do not block a deletion after their API is removed, and are watched again when it is restored", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "api-gone")
		group := []string{`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: group}, spec: {minMember: 1}}`, pod("member", runningImage)}
		aw := create(ctx, wrap(ns, "gang", group))
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning)
		crd := framework.SampleCRD("scheduling.x-k8s.io", "v1alpha1", "PodGroup")
		Expect(env.Admin.Delete(ctx, crd.DeepCopy())).To(Succeed())
		env.WaitDeleted(ctx, crd.DeepCopy())
		Expect(env.Admin.Delete(ctx, aw)).To(Succeed())
		env.WaitDeleted(ctx, aw)

		Expect(env.Admin.Create(ctx, crd)).To(Succeed())
		env.WaitForCondition(ctx, crd, "Established", "True", "")
		recreated := create(ctx, wrap(ns, "recreated", group))
		waitForPhase(ctx, recreated, awv1beta2.PhaseRunning)
		Expect(env.Admin.Delete(ctx, object("scheduling.x-k8s.io/v1alpha1", "PodGroup", ns, "group"))).To(Succeed())
		waitForPhase(ctx, recreated, awv1beta2.PhaseFailed, hasConditions(recreated, "Unhealthy=True/MissingComponent"))
	}, SpecTimeout(specTimeout))

	It("become ready and stay ready, without a request in the steady state [appwrapper-38] [D13] [D15]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "kinds")
		statefulSet := `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2, serviceName: db, selector: {matchLabels: {app: db}},
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: "registry.example.com/db:1"}]}}}}`
		service := `{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {clusterIP: None, selector: {app: db}, ports: [{port: 80}]}}`
		mixed := create(ctx, wrap(ns, "mixed", []string{service, statefulSet, deployment("web", 2), pod("extra", runningImage)}))
		waitForPhase(ctx, mixed, awv1beta2.PhaseRunning, hasConditions(mixed, "PodsReady=True"))
		Expect(podsOf(ctx, mixed)).To(HaveLen(5))
		torch := create(ctx, wrap(ns, "torch", []string{`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: torch}, spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}`}))
		waitForPhase(ctx, torch, awv1beta2.PhaseRunning)
		createPodAsController(ctx, "kubeflow.org/v1", "PyTorchJob", ns, "torch", "torch")
		waitForPhase(ctx, torch, awv1beta2.PhaseRunning, hasConditions(torch, "PodsReady=True"))
		batch := create(ctx, wrap(ns, "batch", []string{job("steady", neverReadyImage, 2), `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: set}, spec: {replicatedJobs: [
  {name: w, replicas: 2, template: {spec: {parallelism: 1, completions: 1, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "testcluster.invalid/not-ready:1"}]}}}}}]}}`}))
		waitForPhase(ctx, batch, awv1beta2.PhaseRunning)
		createJobsAsController(ctx, ns, "set")
		waitForPhase(ctx, batch, awv1beta2.PhaseRunning, hasConditions(batch, "PodsReady=True"))
		Expect(podsOf(ctx, batch)).To(HaveLen(4))

		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		expectNoRequestsIn(ns)
		By("touching a deployed object")
		env.Touch(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}})
		expectNoRequestsIn(ns)
	}, SpecTimeout(specTimeout))

	It("can be RayClusters and RayJobs without a controller [appwrapper-39]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "ray")
		cluster := create(ctx, wrap(ns, "cluster", []string{`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: c}, spec: {headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: i}]}}}}}`}))
		job := create(ctx, wrap(ns, "job", []string{rayJob("j")}))
		waitForPhase(ctx, cluster, awv1beta2.PhaseRunning)
		waitForPhase(ctx, job, awv1beta2.PhaseRunning)
	}, SpecTimeout(specTimeout))

	It("complete by their own status, regardless of their pods [D4] [appwrapper-43]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "done")
		plain := create(ctx, wrap(ns, "job", []string{job("plain", runningImage, 2)}))
		waves := create(ctx, wrap(ns, "waves", []string{`{apiVersion: batch/v1, kind: Job, metadata: {name: waves}, spec: {ttlSecondsAfterFinished: 0, parallelism: 1, completions: 3,
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/app:1"}]}}}}`}))
		ray := create(ctx, wrap(ns, "ray", []string{rayJob("ray")}))
		waitForPhase(ctx, plain, awv1beta2.PhaseSucceeded, hasConditions(plain, "QuotaReserved=False/Succeeded"))
		waitForPhase(ctx, waves, awv1beta2.PhaseSucceeded)
		Expect(waves.Status.Retries).To(BeZero())
		waitForPhase(ctx, ray, awv1beta2.PhaseRunning)
		env.Patch(ctx, object("ray.io/v1", "RayJob", ns, "ray"), map[string]any{"status": map[string]any{"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}}, "status")
		waitForPhase(ctx, ray, awv1beta2.PhaseSucceeded)
	}, SpecTimeout(specTimeout))

	It("can use generateName [appwrapper-40] [D10]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "open")
		aw := create(ctx, wrap(ns, "open", []string{`{apiVersion: batch/v1, kind: Job, metadata: {generateName: run-}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example.com/app:1"}]}}}}`}))
		waitForPhase(ctx, aw, awv1beta2.PhaseSucceeded)
		Expect(aw.Status.ComponentStatus[0].Name).To(MatchRegexp("^run-[0-9a-f]{10}$"))
		env.Get(ctx, object("batch/v1", "Job", ns, aw.Status.ComponentStatus[0].Name))
	}, SpecTimeout(specTimeout))

	It("do not count as complete while they have no pods [appwrapper-55]", func(ctx SpecContext) {
		aw := create(ctx, wrap(env.Namespace(ctx, "zero"), "zero", []string{deployment("none", 0)}))
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=True"))
	}, SpecTimeout(specTimeout))

	It("need an additional role if the shipped one does not include them, and do not block others if they cannot be watched [D14]", func(ctx SpecContext) {
		env.AllowForbidden("gadgets.test.example.com")
		ns := env.Namespace(ctx, "gadget")
		gadget := `{apiVersion: test.example.com/v1, kind: Gadget, metadata: {name: g}}`
		aw := create(ctx, wrap(ns, "gadgets", []string{gadget, pod("p", runningImage)}))
		waitForPhase(ctx, aw, awv1beta2.PhaseResuming, func(g Gomega) {
			g.Expect(aw.Status.ComponentStatus[0].Conditions).To(ConsistOf(And(HaveField("Reason", "ComponentCreationErrored"),
				HaveField("Message", ContainSubstring(`bind a ClusterRole with the verbs get, list, watch, create and delete on "gadgets" of the API group "test.example.com"`)))))
		})
		By("granting all but list and watch")
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "gadgets-" + ns}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"test.example.com"}, Resources: []string{"gadgets"}, Verbs: []string{"get", "create", "delete"}}}}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: env.Installed.ServiceAccount.Namespace, Name: env.Installed.ServiceAccount.Name}}}
		for _, granted := range []client.Object{role, binding} {
			Expect(env.Admin.Create(ctx, granted)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, granted)).To(Succeed()) }, NodeTimeout(specTimeout))
		}
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=True"))
		other := create(ctx, wrap(ns, "other", []string{pod("q", runningImage)}))
		waitForPhase(ctx, other, awv1beta2.PhaseRunning, hasConditions(other, "PodsReady=True"))
		Expect(env.Admin.Delete(ctx, aw)).To(Succeed())
		env.WaitDeleted(ctx, aw)
		env.WaitDeleted(ctx, object("test.example.com/v1", "Gadget", ns, "g"))
	}, SpecTimeout(specTimeout))

	It("cause a bounded number of requests for a hundred AppWrappers [appwrapper-48] [appwrapper-51]", func(ctx SpecContext) {
		const appWrapperCount = 100
		ns := env.Namespace(ctx, "many")
		start := env.AuditPosition()
		var appWrappers []*awv1beta2.AppWrapper
		for i := range appWrapperCount {
			appWrappers = append(appWrappers, create(ctx, wrap(ns, fmt.Sprintf("w%d", i), []string{pod(fmt.Sprintf("a%d", i), runningImage), pod(fmt.Sprintf("b%d", i), runningImage)})))
		}
		Eventually(func(g Gomega) {
			list := &awv1beta2.AppWrapperList{}
			g.Expect(env.Admin.List(ctx, list, client.InNamespace(ns))).To(Succeed())
			ready := 0
			for i := range list.Items {
				for _, c := range list.Items[i].Status.Conditions {
					if c.Type == "PodsReady" && c.Status == "True" {
						ready++
					}
				}
			}
			g.Expect(ready).To(Equal(appWrapperCount))
		}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Succeed())
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		// Objects of earlier specs may still be terminating in their namespaces.
		requests := env.Since(start).ByUser(manager.User).WithoutLeases().WithoutDiscovery().Where(func(e framework.Entry) bool {
			return e.Namespace == ns || e.Namespace == ""
		})
		perAW := float64(len(requests.Writes())) / appWrapperCount
		AddReportEntry("requests per AppWrapper until ready", fmt.Sprintf("%.1f writes, %d live reads in total", perAW, len(requests.Reads())), ReportEntryVisibilityAlways)
		Expect(perAW).To(BeNumerically("<=", 8.5), "writes")
		Expect(len(requests.Reads())).To(BeNumerically("<=", appWrapperCount/10), "%s", requests.Reads())
		expectNoRequestsIn(ns)

		By("deleting the AppWrappers in the foreground")
		Expect(env.Admin.DeleteAllOf(ctx, &awv1beta2.AppWrapper{}, client.InNamespace(ns), client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		for _, aw := range appWrappers {
			env.WaitDeleted(ctx, aw)
		}
		list := &corev1.PodList{}
		Expect(env.Admin.List(ctx, list, client.InNamespace(ns))).To(Succeed())
		Expect(list.Items).To(BeEmpty())
	}, SpecTimeout(2*specTimeout))
})
