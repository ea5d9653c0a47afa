//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

//go:embed testdata/pytorch.py
var pytorchProgram string

// pytorchSample returns a sample of a PyTorchJob with an available image, a command and changes.
func pytorchSample(file, command string, changes ...string) string {
	GinkgoHelper()
	return readSample(file, append([]string{
		"docker.io/kubeflowkatib/pytorch-mnist-cpu:v1beta1-fc858d1", operator.SampleImage,
		"[python3, /opt/pytorch-mnist/mnist.py, --epochs=1]", command,
		"              spec:\n                containers:", "              spec:\n                terminationGracePeriodSeconds: 0\n                containers:",
	}, changes...)...)
}

func describePyTorchJobs() {
	BeforeAll(func(ctx SpecContext) { Expect(images.Training(ctx, store)).To(Succeed()) }, NodeTimeout(startTimeout))

	It("completes with a master and workers that find each other, and releases its quota", func(ctx SpecContext) {
		namespace := createQueue(ctx, "3")
		apply(ctx, namespace, pytorchSample("appwrapper_pytorch_job.yaml", fmt.Sprintf("[python3, -c, %q]", pytorchProgram)))
		waitWithinQuota(ctx, namespace, "3", func(ctx context.Context, _ []corev1.Pod) bool {
			return getAppWrapper(ctx, namespace, "sample-pytorch-job").Status.Phase == v1beta2.PhaseSucceeded
		})
		Expect(kubectl(ctx, "-n", namespace, "get", "pytorchjob", "pytorch-simple", "-o", `jsonpath={.status.conditions[?(@.type=="Succeeded")].status}`)).
			To(Equal("True"))
		Expect(kubectl(ctx, "-n", namespace, "logs", "pytorch-simple-master-0")).To(Equal("['1', '2']"))
		apply(ctx, namespace, urgentAppWrapper)
		waitWithinQuota(ctx, namespace, "3", onlyUrgentIsRunning(namespace))
	}, SpecTimeout(specTimeout))

	It("fails when its worker fails", func(ctx SpecContext) {
		namespace := createQueue(ctx, "2")
		apply(ctx, namespace, pytorchSample("appwrapper_failing_pytorch_job.yaml", "[sleep, infinity]", "[sleep 10; exit 1]", "[sh, -c, exit 17]",
			"  labels:\n", "  annotations: {workload.codeflare.dev.appwrapper/retryLimit: \"0\", workload.codeflare.dev.appwrapper/failureGracePeriodDuration: 1s}\n  labels:\n"))
		wrapper := waitPhase(ctx, namespace, "sample-failing-pytorch-job", v1beta2.PhaseFailed)
		Expect(wrapper.Status.LastFailure.Message).To(ContainSubstring("17"))
		Eventually(ctx, listLivePods, podTimeout).WithArguments(namespace).Should(BeEmpty())
	}, SpecTimeout(specTimeout))

	It("fails when its PyTorchJob is deleted while it runs [appwrapper-45]", func(ctx SpecContext) {
		namespace := createQueue(ctx, "3")
		apply(ctx, namespace, pytorchSample("appwrapper_pytorch_job.yaml", "[sleep, infinity]"))
		waitPodsReady(ctx, namespace, "sample-pytorch-job")
		kubectl(ctx, "-n", namespace, "delete", "pytorchjob", "pytorch-simple", "--wait=false")
		wrapper := waitPhase(ctx, namespace, "sample-pytorch-job", v1beta2.PhaseFailed)
		Expect(wrapper.Status.LastFailure.Reason).To(Equal(v1beta2.ReasonMissingComponent))
		Eventually(ctx, listLivePods, podTimeout).WithArguments(namespace).Should(BeEmpty())
	}, SpecTimeout(specTimeout))
}
