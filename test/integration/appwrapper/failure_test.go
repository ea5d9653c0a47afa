package appwrapper_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var _ = Describe("A workload that fails", func() {
	It("fails if it has no retries left, and records the failure [appwrapper-9]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "once")
		start := env.AuditPosition()
		aw := create(ctx, wrap(ns, "doomed", []string{pod("good", runningImage), pod("bad", failingImage)},
			withAnnotations("failureGracePeriodDuration", "0s", "retryLimit", "0", "deletionOnFailureGracePeriodDuration", "4s")))
		failed := waitForWrittenStatus(ctx, start, aw, awv1beta2.PhaseFailed, "ResourcesDeployed=True", "QuotaReserved=True", "Unhealthy=True/FoundFailedPods", "PodsReady=False")
		Expect(meta.FindStatusCondition(failed.Status.Conditions, "Unhealthy").Message).To(BeEmpty())
		waitForPhase(ctx, aw, awv1beta2.PhaseFailed, hasConditions(aw, "ResourcesDeployed=False/Failed", "QuotaReserved=False/Failed", "DeletingResources=False/DeletionComplete"))
		Expect(aw.Spec.Suspend).To(BeFalse())
		Expect(podsOf(ctx, aw)).To(BeEmpty())
		Expect(aw.Status.LastFailure.Message).To(And(ContainSubstring("1 failed pods; pod bad on node node-"), ContainSubstring("container main ended with exit code 1 (Error)")))

		By("reporting the failure in Events [D31]")
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(env.Admin.List(ctx, list, client.InNamespace(ns))).To(Succeed())
			var reported []string
			for _, e := range list.Items {
				if e.Regarding.Kind == "AppWrapper" {
					reported = append(reported, e.Type+" "+e.Reason)
				}
			}
			g.Expect(reported).To(ConsistOf("Normal Running", "Warning Unhealthy", "Warning Failed"))
		}).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
	}, SpecTimeout(specTimeout))

	It("is retried up to its limit, with a pause between the attempts [appwrapper-44]", func(ctx SpecContext) {
		start := env.AuditPosition()
		aw := create(ctx, wrap(env.Namespace(ctx, "retries"), "job", []string{job("crash", failingImage, 1)},
			withAnnotations("failureGracePeriodDuration", "0s", "retryLimit", "2", "retryPausePeriodDuration", "3s")))
		waitForPhase(ctx, aw, awv1beta2.PhaseFailed, hasConditions(aw, "ResourcesDeployed=False/Failed"))
		Expect(aw.Status.Retries).To(BeEquivalentTo(2))
		Expect(aw.Status.CompletionTime.Sub(aw.CreationTimestamp.Time)).To(BeNumerically(">=", 4*time.Second), "two pauses, minus rounding")
		Expect(countTransitions(start, aw, awv1beta2.PhaseResetting)).To(Equal(2))
		Expect(countTransitions(start, aw, awv1beta2.PhaseRunning)).To(Equal(3))
		waitForNoPods(ctx, aw)
	}, SpecTimeout(specTimeout))

	It("fails when a component is deleted [appwrapper-45]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "missing")
		aw := create(ctx, wrap(ns, "torch", []string{`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: torch}, spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}`}))
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning)
		Expect(env.Admin.Delete(ctx, object("kubeflow.org/v1", "PyTorchJob", ns, "torch"))).To(Succeed())
		waitForPhase(ctx, aw, awv1beta2.PhaseFailed, hasConditions(aw, "Unhealthy=True/MissingComponent"))
		Expect(meta.FindStatusCondition(aw.Status.Conditions, "Unhealthy").Message).To(Equal("Only found 0 deployed components, but was expecting 1"))
		Expect(aw.Status.LastFailure.Message).To(ContainSubstring("PyTorchJob torch"))
	}, SpecTimeout(specTimeout))

	It("is reset when its pods are not ready in time, for example because of an init container [appwrapper-47]", func(ctx SpecContext) {
		start := env.AuditPosition()
		template := strings.Replace(job("stuck", unpullableImage, 1), "containers: [", `initContainers: [{name: wait, image: "`+runningImage+`"}], containers: [`, 1)
		aw := create(ctx, wrap(env.Namespace(ctx, "stuck"), "init", []string{template},
			withAnnotations("warmupGracePeriodDuration", "4s", "admissionGracePeriodDuration", "3s", "retryLimit", "1", "retryPausePeriodDuration", "0s")))
		Eventually(func(g Gomega) {
			for _, p := range podsOf(ctx, aw) {
				if p.Status.Phase == corev1.PodPending && len(p.Status.ContainerStatuses) > 0 && len(p.Status.InitContainerStatuses) == 0 {
					g.Expect(client.IgnoreNotFound(setInitContainerRunning(ctx, &p))).To(Succeed())
				}
			}
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(aw), aw)).To(Succeed())
			g.Expect(aw.Status.Phase).To(Equal(awv1beta2.PhaseFailed))
		}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
		waitForPhase(ctx, aw, awv1beta2.PhaseFailed, hasConditions(aw, "Unhealthy=True/InsufficientPodsReady"))
		Expect(countTransitions(start, aw, awv1beta2.PhaseResetting)).To(Equal(1))
		Expect(aw.Status.Retries).To(BeEquivalentTo(1))
		Expect(aw.Status.LastFailure.Message).To(ContainSubstring("1 pods pending; 0 pods running; 0 pods succeeded"))
	}, SpecTimeout(specTimeout))

	It("gets the failure grace period when the phase of a ready pod becomes Unknown [appwrapper-54] [D3]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "dip")
		aw := create(ctx, wrap(ns, "steady", []string{pod("one", runningImage), pod("two", runningImage)},
			withAnnotations("warmupGracePeriodDuration", "10m", "failureGracePeriodDuration", "6s", "retryLimit", "0", "deletionOnFailureGracePeriodDuration", "1h")))
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=True"))
		start := env.AuditPosition()
		setPhase(ctx, ns, "one", corev1.PodUnknown)
		degraded := waitForWrittenStatus(ctx, start, aw, "", "PodsReady=False/InsufficientPodsReady")
		notReadySince := meta.FindStatusCondition(degraded.Status.Conditions, "PodsReady").LastTransitionTime
		waitForPhase(ctx, aw, awv1beta2.PhaseFailed, hasConditions(aw, "Unhealthy=True/InsufficientPodsReady"))
		Expect(aw.Status.CompletionTime.Sub(notReadySince.Time)).To(BeNumerically(">=", 5*time.Second))
	}, SpecTimeout(specTimeout))

	It("fails when its JobSet or RayJob reports a failure [D5]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "word")
		set := create(ctx, wrap(ns, "set", []string{`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: set}, spec: {replicatedJobs: [{name: w, template: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}}]}}`}, failFast))
		ray := create(ctx, wrap(ns, "ray", []string{rayJob("ray")}, failFast))
		for _, aw := range []*awv1beta2.AppWrapper{set, ray} {
			waitForPhase(ctx, aw, awv1beta2.PhaseRunning)
		}
		env.Patch(ctx, object("jobset.x-k8s.io/v1alpha2", "JobSet", ns, "set"), map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Failed", "status": "True", "reason": "FailedJobs", "message": "jobset failed"}}}}, "status")
		env.Patch(ctx, object("ray.io/v1", "RayJob", ns, "ray"), map[string]any{"status": map[string]any{"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed"}}, "status")
		for _, aw := range []*awv1beta2.AppWrapper{set, ray} {
			waitForPhase(ctx, aw, awv1beta2.PhaseFailed, hasConditions(aw, "Unhealthy=True/FailedComponent"))
		}
		Expect(set.Status.LastFailure.Message).To(ContainSubstring("JobSet set (FailedJobs: jobset failed)"))
	}, SpecTimeout(specTimeout))

	It("waits for the objects of an earlier AppWrapper with its name, and fails for an object that it does not own [D9] [appwrapper-56]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "again")
		first := create(ctx, wrap(ns, "same", []string{deployment("web", 2)}))
		waitForPhase(ctx, first, awv1beta2.PhaseRunning, hasConditions(first, "PodsReady=True"))
		By("deleting the AppWrapper and creating it again while its object exists")
		held := object("apps/v1", "Deployment", ns, "web")
		env.Patch(ctx, held, map[string]any{"metadata": map[string]any{"finalizers": []string{"test.example.com/hold"}}})
		env.Patch(ctx, first, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		Expect(env.Admin.Delete(ctx, first, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		env.WaitDeleted(ctx, first)
		second := create(ctx, wrap(ns, "same", []string{deployment("web", 2)}))
		waitForPhase(ctx, second, awv1beta2.PhaseResuming, func(g Gomega) {
			g.Expect(fmt.Sprint(second.Status.ComponentStatus)).To(ContainSubstring("waiting until it is deleted"))
		})
		env.Patch(ctx, held, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		waitForPhase(ctx, second, awv1beta2.PhaseRunning, hasConditions(second, "PodsReady=True"))
		Expect(second.Status.Retries).To(BeZero())

		By("creating an AppWrapper whose object exists and has no owner")
		Expect(env.Admin.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "existing"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: runningImage}}}})).To(Succeed())
		third := create(ctx, wrap(ns, "conflicting", []string{pod("existing", runningImage)}))
		waitForPhase(ctx, third, awv1beta2.PhaseFailed, hasConditions(third, "Unhealthy=True/CreateFailed", "ResourcesDeployed=False"))
		env.Get(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "existing"}})
	}, SpecTimeout(specTimeout))
})

// setInitContainerRunning sets the status that a kubelet reports for a pod whose first init container never ends.
func setInitContainerRunning(ctx context.Context, p *corev1.Pod) error {
	original := p.DeepCopy()
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "wait", Image: runningImage, State: corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: p.CreationTimestamp}}}}
	for i := range p.Status.ContainerStatuses {
		p.Status.ContainerStatuses[i].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	}
	return env.Admin.Status().Patch(ctx, p, client.MergeFrom(original))
}

func rayJob(name string) string {
	return `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: ` + name + `}, spec: {entrypoint: "true", rayClusterSpec: {headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: head, image: i}]}}}}}}`
}
