package appwrapper_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// createGPUNodes creates nodes with eight GPUs each and deletes them at the end of the spec.
func createGPUNodes(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		capacity := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
		for resourceName, amount := range map[corev1.ResourceName]string{corev1.ResourceCPU: "64", corev1.ResourceMemory: "1Ti", corev1.ResourcePods: "100"} {
			capacity[resourceName] = resource.MustParse(amount)
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
				Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
		}
		Expect(env.Admin.Create(ctx, node)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, node))).To(Succeed())
		})
		env.WaitForCondition(ctx, node, string(corev1.NodeReady), metav1.ConditionTrue, "")
	}
}

// setHealthLabel sets the label by which Autopilot reports the health of the GPUs of a node.
func setHealthLabel(ctx context.Context, node, value string) {
	GinkgoHelper()
	env.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}},
		map[string]any{"metadata": map[string]any{"labels": map[string]any{awv1beta2.LabelAutopilot: value}}})
}

// deleteAndWait deletes an AppWrapper and waits, because its nodes are deleted at the end of the spec.
func deleteAndWait(ctx context.Context, aw *awv1beta2.AppWrapper) {
	GinkgoHelper()
	Expect(env.Admin.Delete(ctx, aw)).To(Succeed())
	env.WaitDeleted(ctx, aw)
}

const gpuPod = `{apiVersion: v1, kind: Pod, metadata: {name: gpu}, spec: {restartPolicy: Never,
  containers: [{name: main, image: "` + runningImage + `", resources: {limits: {nvidia.com/gpu: 1}}}]}}`

// Serial: nodes and their labels affect every spec.
var _ = Describe("Unhealthy GPUs", Serial, func() {
	It("move a workload to another node without counting a retry [appwrapper-46] [appwrapper-12]", func(ctx SpecContext) {
		createGPUNodes(ctx, "gpu-a", "gpu-b")
		aw := create(ctx, wrap(env.Namespace(ctx, "gpu"), "moves", []string{gpuPod}, withAnnotations("retryPausePeriodDuration", "0s", "retryLimit", "1")))
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=True"))
		original := podsOf(ctx, aw)[0]
		Expect(original.Spec.NodeName).To(HavePrefix("gpu-"))
		Expect(original.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms).To(HaveLen(1))

		By("reporting a warning, which does not evict")
		env.WaitIdle(manager.User, idlePeriod, specTimeout) // the Events are written after the status
		setHealthLabel(ctx, original.Spec.NodeName, "WARN")
		expectNoRequestsIn(aw.Namespace)
		Expect(podsOf(ctx, aw)).To(ConsistOf(HaveField("UID", original.UID)))

		By("reporting a fault that evicts")
		setHealthLabel(ctx, original.Spec.NodeName, "EVICT")
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=True", "Unhealthy=False"), func(g Gomega) {
			pods := podsOf(ctx, aw)
			g.Expect(pods).To(HaveLen(1))
			g.Expect(pods[0].UID).NotTo(Equal(original.UID))
			g.Expect(pods[0].Spec.NodeName).To(And(HavePrefix("gpu-"), Not(Equal(original.Spec.NodeName))))
		})
		Expect(aw.Status.Retries).To(BeZero())
		Expect(meta.FindStatusCondition(aw.Status.Conditions, awv1beta2.ConditionResourcesDeployed).Message).To(Equal("Reset complete; resuming"))
		deleteAndWait(ctx, aw)
	}, SpecTimeout(specTimeout))

	It("do not affect pods without GPUs", func(ctx SpecContext) {
		createGPUNodes(ctx, "gpu-c")
		cpuPod := `{apiVersion: v1, kind: Pod, metadata: {name: cpu}, spec: {restartPolicy: Never, nodeSelector: {kubernetes.io/hostname: gpu-c}, containers: [{name: main, image: "` + runningImage + `"}]}}`
		aw := create(ctx, wrap(env.Namespace(ctx, "gpu"), "stays", []string{cpuPod}))
		waitForPhase(ctx, aw, awv1beta2.PhaseRunning, hasConditions(aw, "PodsReady=True"))
		original := podsOf(ctx, aw)[0]
		env.WaitIdle(manager.User, idlePeriod, specTimeout) // the Events are written after the status
		setHealthLabel(ctx, "gpu-c", "EVICT")
		expectNoRequestsIn(aw.Namespace)
		Expect(podsOf(ctx, aw)).To(ConsistOf(HaveField("UID", original.UID)))
		deleteAndWait(ctx, aw)
	}, SpecTimeout(specTimeout))
})
