//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

func describeAppWrappers() {
	It("completes a Job, releases its quota, and deletes the Job after its TTL [appwrapper-42] [appwrapper-43]", func(ctx SpecContext) {
		namespace := createQueue(ctx, "1")
		apply(ctx, namespace, readSample("appwrapper_job.yaml", "sleep 600", "sleep 2; exit 0", "Duration: 1m", "Duration: 5s"))
		apply(ctx, namespace, readSample("appwrapper_job.yaml", "sleep 600", "sleep 1", "sample-job", "next-job"))
		waitWithinQuota(ctx, namespace, "1", func(ctx context.Context, _ []corev1.Pod) bool {
			return getAppWrapper(ctx, namespace, "next-job").Status.Phase == v1beta2.PhaseSucceeded
		})
		completed := getAppWrapper(ctx, namespace, "sample-job")
		Expect(completed.Status.Phase).To(Equal(v1beta2.PhaseSucceeded))
		Expect(meta.IsStatusConditionFalse(completed.Status.Conditions, v1beta2.ConditionQuotaReserved)).To(BeTrue())
		Eventually(ctx, func(ctx context.Context) (string, error) {
			return tryKubectl(ctx, "", "-n", namespace, "get", "jobs,pods", "--selector=workload.codeflare.dev/appwrapper=sample-job", "-o", "name")
		}, podTimeout).Should(BeEmpty())
		Expect(getAppWrapper(ctx, namespace, "sample-job").Status.Phase).To(Equal(v1beta2.PhaseSucceeded))
	}, SpecTimeout(specTimeout))

	It("completes a JobSet", func(ctx SpecContext) {
		namespace := createQueue(ctx, "1")
		apply(ctx, namespace, readSample("appwrapper_jobset.yaml", "sleep 100", "sleep 1"))
		waitWithinQuota(ctx, namespace, "1", func(ctx context.Context, _ []corev1.Pod) bool {
			return getAppWrapper(ctx, namespace, "sample-jobset").Status.Phase == v1beta2.PhaseSucceeded
		})
		Expect(kubectl(ctx, "-n", namespace, "get", "jobset", "sample-jobset", "-o", "jsonpath={.status.terminalState}")).To(Equal("Completed"))
		Expect(strings.Fields(kubectl(ctx, "-n", namespace, "get", "pods", "--field-selector=status.phase=Succeeded", "-o", "name"))).To(HaveLen(5))
	}, SpecTimeout(specTimeout))

	It("is preempted by a workload of higher priority, and resumes after it", func(ctx SpecContext) {
		namespace := createQueue(ctx, "2")
		// A shell that runs as process 1 of its container ignores SIGTERM.
		apply(ctx, namespace, readSample("appwrapper_deployment.yaml", "terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 5",
			"sleep 10000", "while :; do sleep 1; done"))
		waitPodsReady(ctx, namespace, "sample-deployment")

		apply(ctx, namespace, urgentAppWrapper)
		terminating := false
		waitWithinQuota(ctx, namespace, "2", func(ctx context.Context, live []corev1.Pod) bool {
			for i := range live {
				terminating = terminating || live[i].DeletionTimestamp != nil
			}
			return onlyUrgentIsRunning(namespace)(ctx, live)
		})
		Expect(terminating).To(BeTrue(), "no pod was terminating, so the quota was not tested")
		Expect(getAppWrapper(ctx, namespace, "sample-deployment").Status.Phase).To(Equal(v1beta2.PhaseSuspended))

		kubectl(ctx, "-n", namespace, "delete", "appwrapper", "urgent")
		waitPodsReady(ctx, namespace, "sample-deployment")
	}, SpecTimeout(specTimeout))

	It("is retried with a new pod when its pod fails, and finally fails with the cause", func(ctx SpecContext) {
		namespace := createQueue(ctx, "1")
		apply(ctx, namespace, readSample("appwrapper_failing_pod.yaml", "sleep 10]", "exit 0]", "sleep 5; exit 1", "exit 17",
			"Duration: 10s", "Duration: 1s", "    workload.codeflare.dev.appwrapper/delectionOnFailureGracePeriodDuration: 5m\n", ""))
		podUIDs := sets.New[types.UID]()
		waitWithinQuota(ctx, namespace, "1", func(ctx context.Context, _ []corev1.Pod) bool {
			var pods corev1.PodList
			Expect(env.Admin.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
			for i := range pods.Items {
				podUIDs.Insert(pods.Items[i].UID)
			}
			wrapper := getAppWrapper(ctx, namespace, "sample-failing-pod")
			return wrapper.Status.Phase == v1beta2.PhaseFailed && meta.IsStatusConditionFalse(wrapper.Status.Conditions, v1beta2.ConditionQuotaReserved)
		})
		Expect(podUIDs).To(HaveLen(2))
		wrapper := getAppWrapper(ctx, namespace, "sample-failing-pod")
		Expect(wrapper.Status.Retries).To(BeEquivalentTo(1))
		Expect(wrapper.Status.LastFailure.Message).To(ContainSubstring("17"))
		Expect(kubectl(ctx, "-n", namespace, "get", "pods", "-o", "name")).To(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("fails when its image cannot be pulled", func(ctx SpecContext) {
		namespace := createQueue(ctx, "1")
		const prefix = "    workload.codeflare.dev.appwrapper/"
		apply(ctx, namespace, readSample("appwrapper_job.yaml", operator.SampleImage, "quay.io/example/absent:1",
			prefix+"successTTLDuration: 1m\n", prefix+"warmupGracePeriodDuration: 8s\n"+prefix+"admissionGracePeriodDuration: 2s\n"+
				prefix+"retryLimit: \"1\"\n"+prefix+"retryPausePeriodDuration: 1s\n"))
		var wrapper *v1beta2.AppWrapper
		messages := sets.New[string]()
		Eventually(ctx, func(ctx context.Context) v1beta2.AppWrapperPhase {
			wrapper = getAppWrapper(ctx, namespace, "sample-job")
			if wrapper.Status.LastFailure != nil {
				messages.Insert(wrapper.Status.LastFailure.Message)
			}
			return wrapper.Status.Phase
		}, podTimeout).Should(Equal(v1beta2.PhaseFailed))
		Expect(wrapper.Status.Retries).To(BeEquivalentTo(1))
		Expect(messages.UnsortedList()).To(ContainElement(ContainSubstring("cannot be pulled")))
		Eventually(ctx, listLivePods, podTimeout).WithArguments(namespace).Should(BeEmpty())
	}, SpecTimeout(specTimeout))

	// Without a kubelet, the status of the pods does not report that the containers have terminated.
	It("is force-deleted when the kubelet stops", func(ctx SpecContext) {
		namespace := createQueue(ctx, "2")
		apply(ctx, namespace, readSample("appwrapper_deployment.yaml", "terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 1",
			"  labels:\n    kueue", "  annotations: {workload.codeflare.dev.appwrapper/forcefulDeletionGracePeriodDuration: 8s}\n  labels:\n    kueue"))
		waitPodsReady(ctx, namespace, "sample-deployment")
		signalKubelet(syscall.SIGSTOP)
		DeferCleanup(signalKubelet, syscall.SIGCONT)
		kubectl(ctx, "-n", namespace, "delete", "appwrapper", "sample-deployment", fmt.Sprint("--timeout=", podTimeout))
		Expect(kubectl(ctx, "-n", namespace, "get", "deployments,pods", "-o", "name")).To(BeEmpty())
	}, SpecTimeout(specTimeout))
}

// waitPodsReady waits until the condition PodsReady of an AppWrapper is True.
func waitPodsReady(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	kubectl(ctx, "-n", namespace, "wait", "--for=condition=PodsReady", "appwrapper/"+name, fmt.Sprint("--timeout=", podTimeout))
}

func signalKubelet(signal syscall.Signal) {
	GinkgoHelper()
	kubelets := findProcesses("cmdline", "--config="+filepath.Join(env.Instance.Dir(), "kubelet.yaml"))
	Expect(kubelets).To(HaveLen(1))
	Expect(syscall.Kill(kubelets[0], signal)).To(Succeed())
}
