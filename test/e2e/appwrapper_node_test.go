//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

const (
	realNode = "node-0"
	// shortGracePeriods are annotations of an AppWrapper.
	shortGracePeriods = `  annotations:
    workload.codeflare.dev.appwrapper/admissionGracePeriodDuration: 5s
    workload.codeflare.dev.appwrapper/warmupGracePeriodDuration: 20s
    workload.codeflare.dev.appwrapper/failureGracePeriodDuration: 2s
    workload.codeflare.dev.appwrapper/retryPausePeriodDuration: 1s
    workload.codeflare.dev.appwrapper/forcefulDeletionGracePeriodDuration: 5s
`
	// evictImmediately is a toleration without a delay before the eviction from an unreachable node.
	evictImmediately = "tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]"
)

func describeLostNodes() {
	It("is retried when its node stops reporting, and runs again when the node recovers", func(ctx SpecContext) {
		namespace := createQueue(ctx, "1")
		apply(ctx, namespace, readSample("appwrapper_job.yaml", "  annotations:\n", shortGracePeriods, "restartPolicy: Never", "restartPolicy: Never\n            "+evictImmediately))
		waitPodsReady(ctx, namespace, "sample-job")
		previous := listLivePods(ctx, namespace)
		Expect(previous).To(HaveLen(1))

		By("stopping the kubelet")
		addNode(ctx)
		signalKubelet(syscall.SIGSTOP)
		DeferCleanup(func(ctx context.Context) {
			signalKubelet(syscall.SIGCONT)
			Eventually(ctx, getNodeReady).Should(Equal("True"))
		}, NodeTimeout(podTimeout))
		// The node controller would do this only after its grace period, and would then also set the pod of the operator unready.
		setNodeReady(ctx, realNode, corev1.ConditionUnknown)
		var wrapper *v1beta2.AppWrapper
		Eventually(ctx, func(ctx context.Context) (string, error) {
			wrapper = getAppWrapper(ctx, namespace, "sample-job")
			state := string(wrapper.Status.Phase)
			for _, pod := range listLivePods(ctx, namespace) {
				state += fmt.Sprintf(", previous %t, unschedulable %t", pod.UID == previous[0].UID, unschedulable(&pod))
			}
			return state, nil
		}, podTimeout).Should(Equal("Running, previous false, unschedulable true"))
		Expect(wrapper.Status.Retries).To(BeEquivalentTo(1))
		Expect(wrapper.Status.LastFailure.Reason).To(Equal(v1beta2.ReasonInsufficientPods))

		By("resuming the kubelet")
		signalKubelet(syscall.SIGCONT)
		waitPodsReady(ctx, namespace, "sample-job")
	}, SpecTimeout(specTimeout))

	It("leaves a node with the label EVICT without counting a retry, and runs there again with the label WARN [appwrapper-46]", func(ctx SpecContext) {
		const gpus = `[{"op": "%[1]s", "path": "/status/capacity/nvidia.com~1gpu", "value": "1"}, {"op": "%[1]s", "path": "/status/allocatable/nvidia.com~1gpu", "value": "1"}]`
		patchGPUs := func(ctx context.Context, operation string) {
			kubectl(ctx, "patch", "node", realNode, "--subresource=status", "--type=json", "-p", fmt.Sprintf(gpus, operation))
		}
		patchGPUs(ctx, "add")
		DeferCleanup(func(ctx context.Context) { patchGPUs(ctx, "remove") })
		namespace := createQueue(ctx, "1")
		apply(ctx, namespace, readSample("appwrapper_job.yaml", "  annotations:\n", shortGracePeriods,
			"restartPolicy: Never", "restartPolicy: Never\n            terminationGracePeriodSeconds: 0", "cpu: 1", "cpu: 1\n                limits: {nvidia.com/gpu: 1}"))
		waitPodsReady(ctx, namespace, "sample-job")
		previous := listLivePods(ctx, namespace)
		Expect(previous).To(HaveLen(1))

		label := func(ctx context.Context, value string) {
			kubectl(ctx, "label", "node", realNode, "--overwrite", v1beta2.LabelAutopilot+value)
		}
		label(ctx, "=EVICT")
		DeferCleanup(label, "-")
		var wrapper *v1beta2.AppWrapper
		Eventually(ctx, func(ctx context.Context) bool {
			wrapper = getAppWrapper(ctx, namespace, "sample-job")
			pods := listLivePods(ctx, namespace)
			return len(pods) == 1 && pods[0].UID != previous[0].UID && unschedulable(&pods[0])
		}, podTimeout).Should(BeTrue(), "no new pod is unschedulable")
		Expect(wrapper.Status.LastFailure.Reason).To(Equal(v1beta2.ReasonAutopilotNoExecute))
		Expect(wrapper.Status.Retries).To(BeZero())

		label(ctx, "=WARN")
		waitPodsReady(ctx, namespace, "sample-job")
	}, SpecTimeout(specTimeout))
}

// addNode creates an unschedulable Node and deletes it after the spec: the node controller evicts no pods while all
// nodes are unreachable.
func addNode(ctx context.Context) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	Expect(env.Admin.Create(ctx, node)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { kubectl(ctx, "delete", "node", node.Name) })
	setNodeReady(ctx, node.Name, corev1.ConditionTrue)
}

// setNodeReady sets the Ready condition of a node, as its kubelet does.
func setNodeReady(ctx context.Context, node string, ready corev1.ConditionStatus) {
	GinkgoHelper()
	now := time.Now().UTC().Format(time.RFC3339)
	kubectl(ctx, "patch", "node", node, "--subresource=status", "-p", fmt.Sprintf(`{"status": {"conditions": [{"type": "Ready", "status": %q, "reason": "Reported",
		"lastHeartbeatTime": %q, "lastTransitionTime": %q}]}}`, ready, now, now))
}

// getNodeReady returns the status of the Ready condition of the real node.
func getNodeReady(ctx context.Context) (string, error) {
	return tryKubectl(ctx, "", "get", "node", realNode, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
}

// unschedulable reports whether the scheduler found no node for the pod.
func unschedulable(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}
