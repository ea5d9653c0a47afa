//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/peers"
)

// touchEvery is the interval at which the pods of a starting peer are annotated.
const touchEvery = 2 * time.Second

var (
	//go:embed testdata/kueue.yaml
	kueueObjects string
	//go:embed testdata/queue.yaml
	queueTemplate string
	//go:embed testdata/urgent.yaml
	urgent string
)

// Kueue admits every Job of the cluster, so it runs for these specs only.
var _ = Describe("Queued work", Ordered, ContinueOnFailure, SpecPriority(1), func() {
	BeforeAll(func(ctx SpecContext) {
		operators := []peer{
			{cluster.JobSet, "jobset-system", "jobset-controller-manager"},
			{cluster.KubeRayOperator, "default", "kuberay-operator"},
			{cluster.TrainingOperator, "kubeflow", "training-operator"},
			{cluster.Kueue, "kueue-system", "kueue-controller-manager"}, // last: its webhooks cover Deployments too
		}
		for _, p := range operators {
			p.start(ctx)
		}
		for _, p := range operators {
			p.waitReady(ctx)
		}
		Eventually(ctx, func(ctx context.Context) error { // the webhooks of Kueue start later
			_, err := tryKubectl(ctx, kueueObjects, "apply", "-f", "-")
			return err
		}, podTimeout).Should(Succeed())
	}, NodeTimeout(startTimeout))

	Describe("An AppWrapper", describeAppWrappers)
	Describe("An AppWrapper whose node is lost", describeLostNodes)
	Describe("An AppWrapper with a PyTorchJob", describePyTorchJobs)
	Describe("A RayCluster", describeRayClusters)
	Describe("The page of", describeQueuedPages)
	Describe("The tutorial of", describeQueuedTutorials)
})

// peer is the operator of another project.
type peer struct {
	name                  cluster.Peer
	namespace, deployment string
}

// start runs the operator as a pod from its own manifests until the end of the container.
func (p peer) start(ctx context.Context) {
	GinkgoHelper()
	manifests, err := peers.Pods(ctx, p.name, store, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	applied, err := tryKubectl(ctx, manifests, "apply", "--server-side", "-f", "-", "-o", "name")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		for name := range strings.FieldsSeq(applied) { // the webhooks would reject every request without their pod
			if strings.Contains(name, "webhookconfiguration.") {
				kubectl(ctx, "delete", "--ignore-not-found", "--wait=false", name)
			}
		}
		kubectl(ctx, "-n", p.namespace, "delete", "--wait=false", "deployment", p.deployment)
	}, NodeTimeout(specTimeout))
}

// waitReady annotates the pods while it waits: their kubelet then updates volumes immediately, and Kueue and JobSet wait for
// their certificates.
func (p peer) waitReady(ctx context.Context) {
	GinkgoHelper()
	touched := 0
	Eventually(ctx, func(ctx context.Context) (string, error) {
		touched++
		if _, err := tryKubectl(ctx, "", "-n", p.namespace, "annotate", "pods", "--all", "--overwrite", fmt.Sprint("e2e/touched=", touched)); err != nil {
			return "", err
		}
		return tryKubectl(ctx, "", "-n", p.namespace, "get", "deployment", p.deployment, "-o", "jsonpath={.status.availableReplicas}")
	}, podTimeout, touchEvery).Should(Equal("1"))
}

// queue creates a namespace with the LocalQueue of the samples and its own quota.
func queue(ctx context.Context, cpus string) (namespace string) {
	GinkgoHelper()
	namespace = env.Namespace(ctx, "queue")
	apply(ctx, namespace, os.Expand(queueTemplate, func(key string) string {
		return map[string]string{"NAMESPACE": namespace, "CPUS": cpus}[key]
	}))
	return namespace
}

// changedSample reads a file of config/samples and replaces texts, given in pairs.
func changedSample(file string, changes ...string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(checkout, "config", "samples", file))
	Expect(err).NotTo(HaveOccurred())
	for i := 0; i < len(changes); i += 2 {
		Expect(string(content)).To(ContainSubstring(changes[i]))
	}
	return strings.NewReplacer(changes...).Replace(string(content))
}

func appWrapper(ctx context.Context, namespace, name string) *v1beta2.AppWrapper {
	GinkgoHelper()
	aw := &v1beta2.AppWrapper{}
	Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, aw)).To(Succeed())
	return aw
}

// reach waits until an AppWrapper has the phase, and returns it.
func reach(ctx context.Context, namespace, name string, phase v1beta2.AppWrapperPhase) *v1beta2.AppWrapper {
	GinkgoHelper()
	var aw *v1beta2.AppWrapper
	Eventually(ctx, func(ctx context.Context) v1beta2.AppWrapperPhase {
		aw = appWrapper(ctx, namespace, name)
		return aw.Status.Phase
	}, podTimeout).Should(Equal(phase), func() string { return fmt.Sprintf("%+v", aw.Status) })
	return aw
}

// livePods returns the pods that have neither succeeded nor failed.
func livePods(ctx context.Context, namespace string) []corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(env.Admin.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
	var live []corev1.Pod
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			live = append(live, pod)
		}
	}
	return live
}

// urgentRuns returns a function that reports whether the AppWrapper of urgent.yaml runs with the only live pod of the namespace.
func urgentRuns(namespace string) func(ctx context.Context, live []corev1.Pod) bool {
	return func(ctx context.Context, live []corev1.Pod) bool {
		return appWrapper(ctx, namespace, "urgent").Status.Phase == v1beta2.PhaseRunning && len(live) == 1 && live[0].Status.Phase == corev1.PodRunning
	}
}

// watchQuota waits for a condition, and fails when the pods of a namespace request more CPUs than their quota.
func watchQuota(ctx context.Context, namespace, cpus string, reached func(ctx context.Context, live []corev1.Pod) bool) {
	GinkgoHelper()
	quota := resource.MustParse(cpus)
	Eventually(ctx, func(ctx context.Context) (bool, error) {
		live, used := livePods(ctx, namespace), resource.Quantity{}
		var names []string
		for i := range live {
			names = append(names, live[i].Name)
			for _, container := range live[i].Spec.Containers {
				used.Add(*container.Resources.Requests.Cpu())
			}
		}
		if used.Cmp(quota) > 0 {
			return false, StopTrying(fmt.Sprintf("pods %s use %s CPUs of %s", names, used.String(), cpus))
		}
		return reached(ctx, live), nil
	}, podTimeout).Should(BeTrue())
}
