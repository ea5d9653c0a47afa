//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
	"github.com/odh-platform/odh-platform-operator/test/operands/programs"
)

const (
	startTimeout = 60 * time.Minute // the first run builds a control plane, a node and images
	// specTimeout includes the time to build images on a new machine.
	specTimeout = 40 * time.Minute
	// podTimeout includes the time to unpack an image.
	podTimeout = 5 * time.Minute

	operatorNamespace = operator.PodNamespace
	managerDeployment = "deployment/" + operator.PodDeployment
)

var (
	env         *framework.Env
	kubectlPath string
	// checkout is the root of the repository.
	checkout string
	// store contains the images that pods may use.
	store images.Store
	// manifests are the manifests of the operator, with images of the store.
	manifests string
)

func TestEndToEnd(t *testing.T) { framework.Run(t, "End to end") }

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	checkout, err = cluster.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	prepareImages(ctx)
	startCluster(ctx, "e2e")
	kubectlPath, err = cluster.Kubectl(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	installOperator(ctx)
}, NodeTimeout(startTimeout))

// startCluster starts a cluster with a real node, which the functions of this package then use.
func startCluster(ctx context.Context, name string, sets ...cluster.Set) {
	GinkgoHelper()
	env = framework.Start(ctx, name, cluster.Bare, framework.WithRealNode(), framework.WithSets(sets...), framework.WithTypes(v1beta1.AddToScheme, awv1beta2.AddToScheme))
	var err error
	store, err = env.Instance.Images()
	Expect(err).NotTo(HaveOccurred())
}

// startOwnCluster starts a cluster with the operator, which replaces the cluster of the suite until the end of the Ginkgo container.
func startOwnCluster(ctx context.Context, name string, sets ...cluster.Set) {
	GinkgoHelper()
	sharedEnv, sharedStore := env, store
	DeferCleanup(func() { env, store = sharedEnv, sharedStore })
	startCluster(ctx, "e2e-"+name, sets...)
	installOperator(ctx)
}

// installOperator builds the images of the operator and of operands, installs the operator, and waits for its rollout.
func installOperator(ctx context.Context) {
	GinkgoHelper()
	var err error
	manifests, err = operator.PackImages(ctx, store)
	Expect(err).NotTo(HaveOccurred())
	buildRegistryImages(ctx, store)
	_, err = tryKubectl(ctx, manifests, "apply", "--server-side", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	waitRollout(ctx, operatorNamespace, managerDeployment)
}

// buildRegistryImages builds the image of Model Registry, which registries and the catalog share, and the image of the catalog data.
func buildRegistryImages(ctx context.Context, in images.Store) {
	GinkgoHelper()
	registry, err := programs.ModelRegistry(ctx)
	Expect(err).NotTo(HaveOccurred())
	catalog, err := cluster.BuildProgram(ctx, "./test/registrytest/cmd/catalog", nil, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	Expect(images.Catalog(ctx, in, registry, catalog)).To(Succeed())
}

var _ = AfterEach(func(ctx SpecContext) {
	printIfFailed(ctx, tryKubectl, [][]string{
		{"get", "pods,pvc,pv", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"-n", operatorNamespace, "logs", managerDeployment, "--tail=50"},
	})
}, NodeTimeout(time.Minute))

// printIfFailed prints the output of kubectl commands if the spec has failed.
func printIfFailed(ctx context.Context, kubectl func(ctx context.Context, input string, args ...string) (string, error), commands [][]string) {
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, args := range commands {
		output, err := kubectl(ctx, "", args...)
		GinkgoWriter.Println(output, err)
	}
}

// tryKubectl runs kubectl as administrator and returns stdout. The error contains stderr.
func tryKubectl(ctx context.Context, input string, args ...string) (string, error) {
	return env.Instance.Kubectl(ctx, input, args...)
}

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := tryKubectl(ctx, "", args...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

func apply(ctx context.Context, namespace, manifests string) {
	GinkgoHelper()
	_, err := tryKubectl(ctx, manifests, "-n", namespace, "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// waitRollout waits until the rollout of a Deployment is complete.
func waitRollout(ctx context.Context, namespace, deployment string) {
	GinkgoHelper()
	kubectl(ctx, "-n", namespace, "rollout", "status", deployment, fmt.Sprint("--timeout=", podTimeout))
}

func waitPodReady(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	kubectl(ctx, "-n", namespace, "wait", "--for=condition=Ready", "pod/"+name, fmt.Sprint("--timeout=", podTimeout))
}

// waitSinglePod waits until exactly one pod with the labels is not terminating, and returns the pod.
func waitSinglePod(ctx context.Context, namespace string, labels client.MatchingLabels) *corev1.Pod {
	GinkgoHelper()
	var found []corev1.Pod
	Eventually(ctx, func(ctx context.Context) []corev1.Pod {
		found = nil
		var pods corev1.PodList
		Expect(env.Admin.List(ctx, &pods, client.InNamespace(namespace), labels)).To(Succeed())
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp == nil {
				found = append(found, pods.Items[i])
			}
		}
		return found
	}, podTimeout).Should(HaveLen(1))
	return &found[0]
}

// readySince returns the time at which the pod became ready, zero if it is not ready.
func readySince(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// findProcesses returns the PIDs of processes whose file in /proc, such as cmdline, contains the text.
func findProcesses(file, text string) []int {
	GinkgoHelper()
	files, err := filepath.Glob("/proc/[0-9]*/" + file)
	Expect(err).NotTo(HaveOccurred())
	var found []int
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(content, []byte(text)) {
			continue // unrelated or exited
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		Expect(err).NotTo(HaveOccurred())
		found = append(found, pid)
	}
	return found
}

// createRestrictedNamespace creates a namespace that enforces the restricted Pod Security level.
func createRestrictedNamespace(ctx context.Context, prefix string) string {
	GinkgoHelper()
	name := env.Namespace(ctx, prefix)
	kubectl(ctx, "label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
	return name
}
