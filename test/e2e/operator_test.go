//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

const (
	leaseName       = "odh-platform-operator"
	managerPods     = "--selector=control-plane=controller-manager"
	writesPerSecond = 20
	restartTimeout  = time.Minute // includes the delay before the kubelet restarts a container

	// leaseDuration is the duration that shortLease sets.
	leaseDuration = 10 * time.Second
	shortLease    = `[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--leader-elect-lease-duration=10s"},
		{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--leader-elect-renew-deadline=7s"},
		{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--leader-elect-retry-period=1s"}]`
)

// managerPodUIDs returns the UIDs of the pods of the operator.
func managerPodUIDs(ctx context.Context) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(ctx, "-n", operatorNamespace, "get", "pods", managerPods, "-o", "jsonpath={.items[*].metadata.uid}"))
}

// podProcesses returns the PIDs of a pod, whose UID is part of the names of its cgroups.
func podProcesses(uid string) []int {
	GinkgoHelper()
	return findProcesses("cgroup", uid)
}

// killManager kills the processes of the manager in a pod and returns their number.
func killManager(uid string) (killed int) {
	GinkgoHelper()
	for _, pid := range podProcesses(uid) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasPrefix(string(command), "/manager\x00") {
			Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
			killed++
		}
	}
	return killed
}

// expectLeader deletes a child of the sample registry, and expects that a leader recreates it in time.
func expectLeader(ctx context.Context, namespace string, within time.Duration) {
	GinkgoHelper()
	const role = "role/registry-user-" + sample
	kubectl(ctx, "-n", namespace, "delete", role)
	Eventually(ctx, func(ctx context.Context) error {
		_, err := tryKubectl(ctx, "", "-n", namespace, "get", role)
		return err
	}, within).Should(Succeed(), "the Role was not recreated")
}

// patcher patches an object continuously. Each patch calls a webhook of the operator.
type patcher struct {
	mutex    sync.Mutex
	done     int
	failures []string
}

func (p *patcher) run(ctx context.Context, object client.Object) {
	limit := flowcontrol.NewTokenBucketRateLimiter(writesPerSecond, 1)
	for number := 0; limit.Wait(ctx) == nil; number++ {
		patch := fmt.Sprintf(`{"metadata": {"annotations": {"example.com/number": "%d"}}}`, number)
		err := env.Admin.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))
		if ctx.Err() != nil {
			return
		}
		p.mutex.Lock()
		p.done++
		if err != nil {
			p.failures = append(p.failures, err.Error())
		}
		p.mutex.Unlock()
	}
}

func (p *patcher) count() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.done
}

// describeOperator describes the specs of the operator in a cluster with a registry that has data.
func describeOperator(registry *registryClient) {
	in := func(args ...string) []string { return append([]string{"-n", registry.namespace}, args...) }
	lease := func(ctx context.Context, field string) string {
		GinkgoHelper()
		return kubectl(ctx, "-n", operatorNamespace, "get", "lease", leaseName, "-o", "jsonpath={.spec."+field+"}")
	}
	// leaderPod waits for a leader and returns the name of its pod.
	leaderPod := func(ctx context.Context) (pod string) {
		GinkgoHelper()
		Eventually(ctx, func(ctx context.Context) string {
			pod = lease(ctx, "holderIdentity")
			return pod
		}, restartTimeout).ShouldNot(BeEmpty())
		return pod
	}
	uidOf := func(ctx context.Context, pod string) string {
		GinkgoHelper()
		return kubectl(ctx, "-n", operatorNamespace, "get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
	}
	expectModel := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(ctx, registry.names, podTimeout).Should(ContainElement("credit-risk"))
	}

	It("has an operator that becomes leader again in the same pod after its process is killed", func(ctx SpecContext) {
		holder := leaderPod(ctx)
		pod := uidOf(ctx, holder)
		Expect(killManager(pod)).To(Equal(1))
		expectLeader(ctx, registry.namespace, restartTimeout)
		Expect(managerPodUIDs(ctx)).To(ContainElement(pod))
		Expect(lease(ctx, "holderIdentity")).To(Equal(holder))
	}, SpecTimeout(specTimeout))

	It("has an operator that rejects no write during its rollout", func(ctx SpecContext) {
		waitRollout(ctx, operatorNamespace, managerDeployment) // an earlier spec kills the process
		var p patcher
		writeCtx, stop := context.WithCancel(ctx)
		var done sync.WaitGroup
		done.Go(func() {
			p.run(writeCtx, &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Name: sample, Namespace: registry.namespace}})
		})
		DeferCleanup(func() { stop(); done.Wait() })
		Eventually(p.count).Should(BeNumerically(">", writesPerSecond))
		// The next spec requires the short Lease.
		kubectl(ctx, "-n", operatorNamespace, "patch", managerDeployment, "--type=json", "-p", shortLease)
		waitRollout(ctx, operatorNamespace, managerDeployment)
		// The previous pods are still terminating.
		Eventually(ctx, managerPodUIDs).Should(HaveLen(2))
		before := p.count()
		Eventually(p.count).Should(BeNumerically(">", before+writesPerSecond))
		stop()
		done.Wait()
		Expect(p.failures).To(BeEmpty(), "of %d writes", p.count())
	}, SpecTimeout(specTimeout))

	It("has a new leader at most 5 s after the Lease expires when the pod of the leader is force-deleted", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) string { return lease(ctx, "leaseDurationSeconds") }).Should(Equal("10"))
		holder, start := leaderPod(ctx), time.Now()
		kubectl(ctx, "-n", operatorNamespace, "delete", "pod", holder, "--force", "--grace-period=0")
		Eventually(ctx, func(ctx context.Context) string { return lease(ctx, "holderIdentity") }).ShouldNot(BeElementOf("", holder))
		duration := time.Since(start)
		AddReportEntry("new leader", "after "+duration.String())
		Expect(duration).To(BeNumerically("<", leaseDuration+5*time.Second))
		expectLeader(ctx, registry.namespace, restartTimeout)
	}, SpecTimeout(specTimeout))

	It("keeps running with its data when the operator is undeployed, and is managed again after a deployment", func(ctx SpecContext) {
		DeferCleanup(deployIfFailed, NodeTimeout(podTimeout))
		Expect(runMake(ctx, "undeploy")).To(ContainSubstring("Removed the operator."))
		Expect(managerPodUIDs(ctx)).To(BeEmpty())
		expectModel(ctx)
		output, err := tryMake(ctx, "uninstall")
		Expect(err).To(HaveOccurred())
		Expect(output).To(SatisfyAll(ContainSubstring("ModelRegistry "+registry.namespace+"/"+sample), ContainSubstring("Nothing was removed.")))
		deploy(ctx)
		expectLeader(ctx, registry.namespace, restartTimeout)
		expectModel(ctx)
	}, SpecTimeout(specTimeout))

	It("keeps its data when the operator is uninstalled with its CRDs", func(ctx SpecContext) {
		DeferCleanup(deployIfFailed, NodeTimeout(podTimeout))
		claims := func() string { return kubectl(ctx, in("get", "pvc,secret", "-o", "name")...) }
		before := claims()
		Expect(before).To(SatisfyAll(ContainSubstring("persistentvolumeclaim/"+sample), ContainSubstring("secret/"+sample)))
		kubectl(ctx, in("delete", "modelregistry", sample, "--timeout=120s")...)
		// The operator still has to remove the finalizers of objects in terminating namespaces of other specs.
		Eventually(ctx, customResources).Should(BeEmpty())
		runMake(ctx, "undeploy")
		runMake(ctx, "uninstall")
		Expect(kubectl(ctx, "get", "crd", "-o", "name")).NotTo(ContainSubstring("opendatahub.io"))
		Eventually(ctx, func(ctx context.Context) string { return kubectl(ctx, in("get", "deployments", "-o", "name")...) }).Should(BeEmpty())
		Expect(claims()).To(Equal(before))

		By("creating a registry of the same name")
		deploy(ctx)
		applyRegistry(ctx, registry.namespace)
		registry.base, registry.token = plainRegistry, ""
		expectModel(ctx)
	}, SpecTimeout(specTimeout))
}

// tryMake runs a make target that installs or removes the operator.
func tryMake(ctx context.Context, target string) (string, error) {
	command := exec.CommandContext(ctx, "make", "-s", target, "KUBECTL="+kubectlPath, "OVERLAY=kubernetes", "IMG="+images.OperatorImage)
	command.Dir, command.Env = checkout, append(os.Environ(), "KUBECONFIG="+env.KubeconfigPath)
	output, err := command.CombinedOutput()
	return string(output), err
}

func runMake(ctx context.Context, target string) string {
	GinkgoHelper()
	output, err := tryMake(ctx, target)
	Expect(err).NotTo(HaveOccurred(), output)
	return output
}

// customResources returns the objects of all kinds of the operator.
func customResources(ctx context.Context) (string, error) {
	names, err := tryKubectl(ctx, "", "get", "crd", "--selector=odh-platform-operator/keep=crd", "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		return "", err
	}
	return tryKubectl(ctx, "", "get", strings.Join(strings.Fields(names), ","), "-A", "-o", "name")
}

// deployIfFailed installs the operator for later specs if this spec has failed.
func deployIfFailed(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		deploy(ctx)
	}
}

func deploy(ctx context.Context) {
	GinkgoHelper()
	runMake(ctx, "deploy")
	// For later specs, whose images have tags: the default manifests name images by digest.
	_, err := tryKubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	waitRollout(ctx, operatorNamespace, managerDeployment)
}
