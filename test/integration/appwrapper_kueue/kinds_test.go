package appwrapper_kueue_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("The components of a queued AppWrapper", func() {
	It("can be Pods, Deployments and a Service, which keep running [appwrapper-38] [appwrapper-50]", func(ctx SpecContext) {
		namespace := createQueue(ctx, "4")
		aw := createWrapper(ctx, wrap(namespace, "mix", pod("a", "1"), pod("b", "1"), deployment("web", 2, "1"), service("web")))
		waitReady(ctx, aw)
		Consistently(func(g Gomega) {
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(aw), aw)).To(Succeed())
			g.Expect(aw.Status.Phase).To(Equal(v1beta2.PhaseRunning))
		}).WithContext(ctx).WithTimeout(stableDuration / 2).WithPolling(poll).Should(Succeed())
	}, SpecTimeout(specTimeout))

	It("can be a Job, whose success completes the AppWrapper and releases the quota [appwrapper-40] [appwrapper-43] [appwrapper-50]", func(ctx SpecContext) {
		namespace := createQueue(ctx, "2")
		done := createWrapper(ctx, wrap(namespace, "done", job("done", 2, "1", "example.com/a:1")))
		waitForPhase(ctx, done, v1beta2.PhaseSucceeded)
		next := createWrapper(ctx, wrap(namespace, "next", job("next", 2, "1", "example.com/a:1")))
		waitForPhase(ctx, next, v1beta2.PhaseSucceeded)
	}, SpecTimeout(specTimeout))

	It("can be a Job that fails, which is retried until the AppWrapper fails [appwrapper-44]", func(ctx SpecContext) {
		namespace := createQueue(ctx, "2")
		aw := wrap(namespace, "failing", job("failing", 1, "1", "testcluster.invalid/failed:1"))
		aw.Annotations[v1beta2.AnnotationFailureGrace], aw.Annotations[v1beta2.AnnotationRetryLimit] = "0s", "2"
		aw.Annotations[v1beta2.AnnotationRetryPause] = "1s"
		createWrapper(ctx, aw)
		waitForPhase(ctx, aw, v1beta2.PhaseFailed)
		Expect(aw.Status.Retries).To(Equal(int32(2)))
		free := createWrapper(ctx, wrap(namespace, "free", pod("free", "2")))
		waitReady(ctx, free)
	}, SpecTimeout(specTimeout))

	It("can be a RayCluster, which KubeRay starts, and which stops and restarts with its quota [appwrapper-39] [appwrapper-50]", func(ctx SpecContext) {
		namespace := createQueue(ctx, "3")
		aw := createWrapper(ctx, wrap(namespace, "ray", rayCluster("ray")))
		waitReady(ctx, aw)
		Expect(podsOf(ctx, Default, aw)).To(HaveLen(3))
		Expect(workloads(ctx, namespace)).To(HaveLen(1), "the RayCluster must have no Workload")
		ray := framework.Manifest("{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: ray, namespace: %s}}", namespace)
		env.WaitFor(ctx, ray, func(g Gomega) {
			state, _, _ := unstructured.NestedString(ray.Object, "status", "state")
			g.Expect(state).To(Equal("ready"))
		})
		env.Patch(ctx, clusterQueue(namespace), map[string]any{"spec": map[string]any{"stopPolicy": "HoldAndDrain"}})
		waitForPhase(ctx, aw, v1beta2.PhaseSuspended)
		env.WaitDeleted(ctx, ray)
		env.Patch(ctx, clusterQueue(namespace), map[string]any{"spec": map[string]any{"stopPolicy": "None"}})
		waitReady(ctx, aw)
		Expect(env.Admin.Delete(ctx, aw, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		deleteWrapper(ctx, aw)
		Expect(podsOf(ctx, Default, aw)).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("can be a RayCronJob, which keeps the quota of one run between runs", func(ctx SpecContext) {
		grantToManager(ctx, rayv1.GroupVersion.Group, "raycronjobs")
		namespace := createQueue(ctx, "3")
		cron := framework.Manifest("{apiVersion: ray.io/v1, kind: RayCronJob, metadata: {name: cron, namespace: %s}}", namespace)
		aw := createWrapper(ctx, wrap(namespace, "cron", rayCronJob("cron", "0 0 1 1 *")))
		waitReady(ctx, aw)
		Expect(podsOf(ctx, Default, aw)).To(BeEmpty(), "its first run is not due")
		next := createWrapper(ctx, wrap(namespace, "next", pod("next", "1")))
		expectSuspended(ctx, next)

		By("starting a run")
		env.Patch(ctx, cron, map[string]any{"spec": map[string]any{"schedule": "@every 5s"}})
		Eventually(func(g Gomega) { g.Expect(len(podsOf(ctx, g, aw))).To(BeNumerically(">=", 3)) }).
			WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
		env.Patch(ctx, cron, map[string]any{"spec": map[string]any{"suspend": true}})
		waitReady(ctx, aw)
		for _, pod := range podsOf(ctx, Default, aw) {
			Expect(pod.Labels).To(HaveKey(raycluster.LabelCluster))
		}
		Expect(workloads(ctx, namespace)).To(HaveLen(2), "a run must have no Workload")

		By("draining the queue")
		env.Patch(ctx, clusterQueue(namespace), map[string]any{"spec": map[string]any{"stopPolicy": "HoldAndDrain"}})
		waitForPhase(ctx, aw, v1beta2.PhaseSuspended)
		env.WaitDeleted(ctx, cron)
		Expect(podsOf(ctx, Default, aw)).To(BeEmpty())
	}, SpecTimeout(specTimeout))
})

// grantToManager grants the manager the permissions for a kind until the end of the spec.
func grantToManager(ctx context.Context, group, resource string) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "appwrapper-" + resource}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: env.Installed.ServiceAccount.Namespace, Name: env.Installed.ServiceAccount.Name}},
	}
	for _, granted := range []client.Object{role, binding} {
		Expect(env.Admin.Create(ctx, granted)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, granted)).To(Succeed()) }, NodeTimeout(specTimeout))
	}
}
