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

// annotateInterval is the interval at which waitReady annotates pods.
const annotateInterval = 2 * time.Second

var (
	//go:embed testdata/kueue.yaml
	kueueObjects string
	//go:embed testdata/queue.yaml
	queueTemplate string
	//go:embed testdata/urgent.yaml
	urgentAppWrapper string
)

// The webhooks of Kueue intercept every Job in the cluster, so Kueue runs only during these specs.
var _ = Describe("Queued workloads", Ordered, ContinueOnFailure, SpecPriority(1), func() {
	BeforeAll(func(ctx SpecContext) {
		operators := []thirdPartyOperator{
			{cluster.JobSet, "jobset-system", "jobset-controller-manager"},
			{cluster.KubeRayOperator, "default", "kuberay-operator"},
			{cluster.TrainingOperator, "kubeflow", "training-operator"},
			{cluster.Kueue, "kueue-system", "kueue-controller-manager"}, // last: it has webhooks for Deployments
		}
		for _, o := range operators {
			o.start(ctx)
		}
		for _, o := range operators {
			o.waitReady(ctx)
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
	Describe("A documentation page", describeQueuedPages)
	Describe("A tutorial", describeQueuedTutorials)
})

// thirdPartyOperator is an operator of another project.
type thirdPartyOperator struct {
	name                  cluster.Peer
	namespace, deployment string
}

// start applies the operator's own manifests. After the Ginkgo container, it deletes the webhook configurations and the Deployment.
func (o thirdPartyOperator) start(ctx context.Context) {
	GinkgoHelper()
	manifests, err := peers.PackPeerImage(ctx, o.name, store, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	applied, err := tryKubectl(ctx, manifests, "apply", "--server-side", "-f", "-", "-o", "name")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		for name := range strings.FieldsSeq(applied) { // without their pod, the webhooks would reject every request
			if strings.Contains(name, "webhookconfiguration.") {
				kubectl(ctx, "delete", "--ignore-not-found", "--wait=false", name)
			}
		}
		kubectl(ctx, "-n", o.namespace, "delete", "--wait=false", "deployment", o.deployment)
	}, NodeTimeout(specTimeout))
}

// waitReady waits until the Deployment is available. It annotates the pods so that the kubelet updates their volumes immediately:
// Kueue and JobSet wait for their certificates.
func (o thirdPartyOperator) waitReady(ctx context.Context) {
	GinkgoHelper()
	attempt := 0
	Eventually(ctx, func(ctx context.Context) (string, error) {
		attempt++
		if _, err := tryKubectl(ctx, "", "-n", o.namespace, "annotate", "pods", "--all", "--overwrite", fmt.Sprint("e2e/touched=", attempt)); err != nil {
			return "", err
		}
		return tryKubectl(ctx, "", "-n", o.namespace, "get", "deployment", o.deployment, "-o", "jsonpath={.status.availableReplicas}")
	}, podTimeout, annotateInterval).Should(Equal("1"))
}

// createQueue creates a namespace, a LocalQueue with the name in the samples, and its ClusterQueue with the given CPU quota.
func createQueue(ctx context.Context, cpus string) (namespace string) {
	GinkgoHelper()
	namespace = env.Namespace(ctx, "queue")
	apply(ctx, namespace, os.Expand(queueTemplate, func(key string) string {
		return map[string]string{"NAMESPACE": namespace, "CPUS": cpus}[key]
	}))
	return namespace
}

// readSample returns a file of config/samples with replacements, given in pairs.
func readSample(file string, changes ...string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(checkout, "config", "samples", file))
	Expect(err).NotTo(HaveOccurred())
	for i := 0; i < len(changes); i += 2 {
		Expect(string(content)).To(ContainSubstring(changes[i]))
	}
	return strings.NewReplacer(changes...).Replace(string(content))
}

func getAppWrapper(ctx context.Context, namespace, name string) *v1beta2.AppWrapper {
	GinkgoHelper()
	wrapper := &v1beta2.AppWrapper{}
	Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, wrapper)).To(Succeed())
	return wrapper
}

// waitPhase waits until an AppWrapper has the phase, and returns the AppWrapper.
func waitPhase(ctx context.Context, namespace, name string, phase v1beta2.AppWrapperPhase) *v1beta2.AppWrapper {
	GinkgoHelper()
	var wrapper *v1beta2.AppWrapper
	Eventually(ctx, func(ctx context.Context) v1beta2.AppWrapperPhase {
		wrapper = getAppWrapper(ctx, namespace, name)
		return wrapper.Status.Phase
	}, podTimeout).Should(Equal(phase), func() string { return fmt.Sprintf("%+v", wrapper.Status) })
	return wrapper
}

// listLivePods returns the pods that have neither succeeded nor failed.
func listLivePods(ctx context.Context, namespace string) []corev1.Pod {
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

// onlyUrgentIsRunning returns a predicate: the AppWrapper of urgent.yaml is Running, and its pod is the only live pod of the namespace.
func onlyUrgentIsRunning(namespace string) func(ctx context.Context, live []corev1.Pod) bool {
	return func(ctx context.Context, live []corev1.Pod) bool {
		return getAppWrapper(ctx, namespace, "urgent").Status.Phase == v1beta2.PhaseRunning && len(live) == 1 && live[0].Status.Phase == corev1.PodRunning
	}
}

// waitWithinQuota waits until the predicate returns true, and fails if the CPU requests of live pods exceed cpus before that.
func waitWithinQuota(ctx context.Context, namespace, cpus string, predicate func(ctx context.Context, live []corev1.Pod) bool) {
	GinkgoHelper()
	quota := resource.MustParse(cpus)
	Eventually(ctx, func(ctx context.Context) (bool, error) {
		live, requested := listLivePods(ctx, namespace), resource.Quantity{}
		var names []string
		for i := range live {
			names = append(names, live[i].Name)
			for _, container := range live[i].Spec.Containers {
				requested.Add(*container.Resources.Requests.Cpu())
			}
		}
		if requested.Cmp(quota) > 0 {
			return false, StopTrying(fmt.Sprintf("pods %s request %s CPUs, want at most %s", names, requested.String(), cpus))
		}
		return predicate(ctx, live), nil
	}, podTimeout).Should(BeTrue())
}
