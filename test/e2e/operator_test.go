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
	leaseName      = "odh-platform-operator"
	managerPods    = "--selector=control-plane=controller-manager"
	writesASecond  = 20
	restartTimeout = time.Minute // much shorter than the Lease of a lost leader

	// leaseDuration is that of shortLease.
	leaseDuration = 10 * time.Second
	shortLease    = `[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--leader-elect-lease-duration=10s"},
		{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--leader-elect-renew-deadline=7s"},
		{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--leader-elect-retry-period=1s"}]`
)

// podsOfManager returns the UIDs of the pods of the operator.
func podsOfManager(ctx context.Context) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(ctx, "-n", operatorNamespace, "get", "pods", managerPods, "-o", "jsonpath={.items[*].metadata.uid}"))
}

// processesOf returns the processes of a pod, whose UID is part of the names of its cgroups.
func processesOf(uid string) []int {
	GinkgoHelper()
	return processes("cgroup", uid)
}

// killManager kills the processes of the manager in a pod, and returns their number.
func killManager(uid string) (killed int) {
	GinkgoHelper()
	for _, pid := range processesOf(uid) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasPrefix(string(command), "/manager\x00") {
			Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
			killed++
		}
	}
	return killed
}

// expectLeader deletes a child of the sample registry, which only a leader recreates.
func expectLeader(ctx context.Context, namespace string, within time.Duration) {
	GinkgoHelper()
	const role = "role/registry-user-" + sample
	kubectl(ctx, "-n", namespace, "delete", role)
	Eventually(ctx, func(ctx context.Context) error {
		_, err := tryKubectl(ctx, "", "-n", namespace, "get", role)
		return err
	}, within).Should(Succeed(), "the Role is not made again")
}

// writes changes an object continuously; each change calls a webhook of the operator.
type writes struct {
	mutex    sync.Mutex
	done     int
	failures []string
}

func (w *writes) run(ctx context.Context, object client.Object) {
	limit := flowcontrol.NewTokenBucketRateLimiter(writesASecond, 1)
	for number := 0; limit.Wait(ctx) == nil; number++ {
		patch := fmt.Sprintf(`{"metadata": {"annotations": {"example.com/number": "%d"}}}`, number)
		err := env.Admin.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))
		if ctx.Err() != nil {
			return
		}
		w.mutex.Lock()
		w.done++
		if err != nil {
			w.failures = append(w.failures, err.Error())
		}
		w.mutex.Unlock()
	}
}

func (w *writes) count() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.done
}

// describeOperator tests the operator in a cluster with a registry that has data.
func describeOperator(registry *registryClient) {
	in := func(args ...string) []string { return append([]string{"-n", registry.namespace}, args...) }
	lease := func(ctx context.Context, field string) string {
		GinkgoHelper()
		return kubectl(ctx, "-n", operatorNamespace, "get", "lease", leaseName, "-o", "jsonpath={.spec."+field+"}")
	}
	// led returns the name of the pod that leads, once there is one.
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
	serves := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(ctx, registry.names, podTimeout).Should(ContainElement("credit-risk"))
	}

	It("has an operator that leads again immediately after its process was killed in its pod", func(ctx SpecContext) {
		holder := leaderPod(ctx)
		pod := uidOf(ctx, holder)
		Expect(killManager(pod)).To(Equal(1))
		expectLeader(ctx, registry.namespace, restartTimeout)
		Expect(podsOfManager(ctx)).To(ContainElement(pod))
		Expect(lease(ctx, "holderIdentity")).To(Equal(holder))
	}, SpecTimeout(specTimeout))

	It("has an operator that refuses no write while it is rolled out", func(ctx SpecContext) {
		rolledOut(ctx, operatorNamespace, managerDeployment) // an earlier spec has killed it
		var w writes
		writing, stop := context.WithCancel(ctx)
		var ended sync.WaitGroup
		ended.Go(func() {
			w.run(writing, &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Name: sample, Namespace: registry.namespace}})
		})
		DeferCleanup(func() { stop(); ended.Wait() })
		Eventually(w.count).Should(BeNumerically(">", writesASecond))
		// The next spec needs the short Lease.
		kubectl(ctx, "-n", operatorNamespace, "patch", managerDeployment, "--type=json", "-p", shortLease)
		rolledOut(ctx, operatorNamespace, managerDeployment)
		// The old pods are still terminating.
		Eventually(ctx, podsOfManager).Should(HaveLen(2))
		before := w.count()
		Eventually(w.count).Should(BeNumerically(">", before+writesASecond))
		stop()
		ended.Wait()
		Expect(w.failures).To(BeEmpty(), "of %d writes", w.count())
	}, SpecTimeout(specTimeout))

	It("has a new leader after the time of the Lease when the pod of the leader was removed by force", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) string { return lease(ctx, "leaseDurationSeconds") }).Should(Equal("10"))
		holder, begin := leaderPod(ctx), time.Now()
		kubectl(ctx, "-n", operatorNamespace, "delete", "pod", holder, "--force", "--grace-period=0")
		Eventually(ctx, func(ctx context.Context) string { return lease(ctx, "holderIdentity") }).ShouldNot(BeElementOf("", holder))
		took := time.Since(begin)
		AddReportEntry("a new leader", "after "+took.String())
		Expect(took).To(BeNumerically("<", leaseDuration+5*time.Second))
		expectLeader(ctx, registry.namespace, restartTimeout)
	}, SpecTimeout(specTimeout))

	It("keeps running with its data when the operator is undeployed, and is managed again afterwards", func(ctx SpecContext) {
		DeferCleanup(deployUnlessDone, NodeTimeout(podTimeout))
		Expect(manage(ctx, "undeploy")).To(ContainSubstring("Removed the operator."))
		Expect(podsOfManager(ctx)).To(BeEmpty())
		serves(ctx)
		output, err := tryManage(ctx, "uninstall")
		Expect(err).To(HaveOccurred())
		Expect(output).To(SatisfyAll(ContainSubstring("ModelRegistry "+registry.namespace+"/"+sample), ContainSubstring("Nothing was removed.")))
		deploy(ctx)
		expectLeader(ctx, registry.namespace, restartTimeout)
		serves(ctx)
	}, SpecTimeout(specTimeout))

	It("leaves its data behind when the operator is uninstalled with all its definitions", func(ctx SpecContext) {
		DeferCleanup(deployUnlessDone, NodeTimeout(podTimeout))
		claims := func() string { return kubectl(ctx, in("get", "pvc,secret", "-o", "name")...) }
		before := claims()
		Expect(before).To(SatisfyAll(ContainSubstring("persistentvolumeclaim/"+sample), ContainSubstring("secret/"+sample)))
		kubectl(ctx, in("delete", "modelregistry", sample, "--timeout=120s")...)
		// The operator still has to remove the finalizers of objects in terminating namespaces of other specs.
		Eventually(ctx, customResources).Should(BeEmpty())
		manage(ctx, "undeploy")
		manage(ctx, "uninstall")
		Expect(kubectl(ctx, "get", "crd", "-o", "name")).NotTo(ContainSubstring("opendatahub.io"))
		Eventually(ctx, func(ctx context.Context) string { return kubectl(ctx, in("get", "deployments", "-o", "name")...) }).Should(BeEmpty())
		Expect(claims()).To(Equal(before))

		By("creating a registry of the same name")
		deploy(ctx)
		applyRegistry(ctx, registry.namespace)
		registry.base, registry.token = plainRegistry, ""
		serves(ctx)
	}, SpecTimeout(specTimeout))
}

// tryManage runs a make target that installs or removes the operator.
func tryManage(ctx context.Context, target string) (string, error) {
	command := exec.CommandContext(ctx, "make", "-s", target, "KUBECTL="+kubectlPath, "OVERLAY=kubernetes", "IMG="+images.OperatorImage)
	command.Dir, command.Env = checkout, append(os.Environ(), "KUBECONFIG="+env.KubeconfigPath)
	output, err := command.CombinedOutput()
	return string(output), err
}

func manage(ctx context.Context, target string) string {
	GinkgoHelper()
	output, err := tryManage(ctx, target)
	Expect(err).NotTo(HaveOccurred(), output)
	return output
}

// customResources lists the objects of all kinds of the operator.
func customResources(ctx context.Context) (string, error) {
	names, err := tryKubectl(ctx, "", "get", "crd", "--selector=odh-platform-operator/keep=crd", "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		return "", err
	}
	return tryKubectl(ctx, "", "get", strings.Join(strings.Fields(names), ","), "-A", "-o", "name")
}

// deployUnlessDone installs the operator for later specs if this spec has failed.
func deployUnlessDone(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		deploy(ctx)
	}
}

func deploy(ctx context.Context) {
	GinkgoHelper()
	manage(ctx, "deploy")
	// For later specs: the default manifests name images by digests, which only their publishers can build.
	_, err := tryKubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	rolledOut(ctx, operatorNamespace, managerDeployment)
}
