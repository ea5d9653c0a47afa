//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
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
)

const (
	leaseName      = "odh-platform-operator"
	managerPods    = "--selector=control-plane=controller-manager"
	writesASecond  = 20
	restartTimeout = time.Minute // far less than the Lease of a leader that is gone
)

// managerPod is the UID of the only pod of the operator.
func managerPod(ctx context.Context) string {
	GinkgoHelper()
	return kubectl(ctx, "-n", operatorNamespace, "get", "pods", managerPods, "-o", "jsonpath={.items[*].metadata.uid}")
}

// processesOf lists the processes of a pod, by its UID, which stands in the names of their cgroups.
func processesOf(uid string) []int {
	GinkgoHelper()
	return processes("cgroup", uid)
}

// expectLeader has a child object of the registry of a sample deleted, which only a leader makes again.
func expectLeader(ctx context.Context, namespace string, within time.Duration) {
	GinkgoHelper()
	const role = "role/registry-user-" + sample
	kubectl(ctx, "-n", namespace, "delete", role)
	Eventually(ctx, func(ctx context.Context) error {
		_, err := tryKubectl(ctx, "", "-n", namespace, "get", role)
		return err
	}, within).Should(Succeed(), "the Role is not made again")
}

// writes changes an object again and again, which a webhook of the operator looks at each time.
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

var _ = Describe("The operator as a pod", func() {
	It("refuses no write while it is rolled out", func(ctx SpecContext) {
		registry := &v1beta1.ModelRegistry{
			ObjectMeta: metav1.ObjectMeta{Name: "written", Namespace: env.Namespace(ctx, "rollout")},
			Spec: v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{Host: "nowhere.example.com", Username: "u", Database: "d",
				PasswordSecret: &v1beta1.SecretKeyValue{Name: "absent", Key: "password"}}},
		}
		Expect(env.Admin.Create(ctx, registry)).To(Succeed())
		var w writes
		writing, stop := context.WithCancel(ctx)
		var ended sync.WaitGroup
		ended.Go(func() { w.run(writing, registry.DeepCopy()) })
		DeferCleanup(func() { stop(); ended.Wait() })
		before := w.count()
		Eventually(w.count).Should(BeNumerically(">", before+writesASecond))
		kubectl(ctx, "-n", operatorNamespace, "rollout", "restart", managerDeployment)
		rolledOut(ctx, operatorNamespace, managerDeployment)
		// The old pod is there a while longer.
		Eventually(ctx, func(ctx context.Context) []string { return strings.Fields(managerPod(ctx)) }).Should(HaveLen(1))
		before = w.count()
		Eventually(w.count).Should(BeNumerically(">", before+writesASecond))
		stop()
		ended.Wait()
		Expect(w.failures).To(BeEmpty(), "of %d writes", w.count())
	}, SpecTimeout(specTimeout))
})

var _ = Describe("The operator with a registry", Ordered, func() {
	var (
		namespace string
		registry  *registryClient
	)
	in := func(args ...string) []string { return append([]string{"-n", namespace}, args...) }
	lease := func(ctx context.Context, field string) string {
		GinkgoHelper()
		return kubectl(ctx, "-n", operatorNamespace, "get", "lease", leaseName, "-o", "jsonpath={.spec."+field+"}")
	}
	serves := func(ctx context.Context) {
		GinkgoHelper()
		Eventually(ctx, registry.names, podTimeout).Should(ConsistOf("kept"))
	}

	BeforeAll(func(ctx SpecContext) {
		namespace = restrictedNamespace(ctx, "operator")
		registry = newRegistry(ctx, namespace)
		Eventually(ctx, func(ctx context.Context) (int, error) {
			status, _, err := registry.ask(ctx, http.MethodPost, "", `{"name": "kept", "customProperties": {}}`)
			return status, err
		}).Should(Equal(http.StatusCreated))
	}, NodeTimeout(specTimeout))

	It("leads again at once after its process was killed in its pod", func(ctx SpecContext) {
		holder, pod := lease(ctx, "holderIdentity"), managerPod(ctx)
		pids := processesOf(pod)
		killed := 0
		for _, pid := range pids {
			command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			Expect(err).NotTo(HaveOccurred())
			if strings.HasPrefix(string(command), "/manager\x00") {
				Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
				killed++
			}
		}
		Expect(killed).To(Equal(1), "%d", pids)
		expectLeader(ctx, namespace, restartTimeout)
		Expect(managerPod(ctx)).To(Equal(pod))
		Expect(lease(ctx, "holderIdentity")).To(Equal(holder))
	}, SpecTimeout(specTimeout))

	It("has a new leader after the time of the Lease when the pod was removed by force", func(ctx SpecContext) {
		const duration, retry = 15 * time.Second, 2 * time.Second
		const args = `[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--leader-elect-lease-duration=%s"},
			{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--leader-elect-renew-deadline=10s"},
			{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--leader-elect-retry-period=%s"}]`
		kubectl(ctx, "-n", operatorNamespace, "patch", managerDeployment, "--type=json", "-p", fmt.Sprintf(args, duration, retry))
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, "-n", operatorNamespace, "rollout", "undo", managerDeployment)
			rolledOut(ctx, operatorNamespace, managerDeployment)
		}, NodeTimeout(podTimeout))
		rolledOut(ctx, operatorNamespace, managerDeployment)
		Eventually(ctx, func(ctx context.Context) string { return lease(ctx, "leaseDurationSeconds") }).Should(Equal("15"))
		holder := lease(ctx, "holderIdentity")

		old, begin := managerPod(ctx), time.Now()
		kubectl(ctx, "-n", operatorNamespace, "delete", "pods", managerPods, "--force", "--grace-period=0")
		Eventually(ctx, func(ctx context.Context) string {
			return kubectl(ctx, "-n", operatorNamespace, "get", "pods", managerPods, "-o",
				`jsonpath={.items[*].metadata.uid} {.items[*].status.conditions[?(@.type=="Ready")].status}`)
		}).Should(SatisfyAll(Not(HavePrefix(old)), HaveSuffix(" True")))
		start := time.Since(begin)
		Eventually(ctx, func(ctx context.Context) string { return lease(ctx, "holderIdentity") }).ShouldNot(BeElementOf("", holder))
		took := time.Since(begin)
		AddReportEntry("a new leader", fmt.Sprintf("after %s, of which the start of its pod took %s", took, start))
		Expect(took).To(BeNumerically("<", max(start, duration)+retry*22/10+5*time.Second))
		expectLeader(ctx, namespace, restartTimeout)
	}, SpecTimeout(specTimeout))

	It("leaves what runs and is stored when it is undeployed, and takes it up again", func(ctx SpecContext) {
		DeferCleanup(deployUnlessDone, NodeTimeout(podTimeout))
		Expect(manage(ctx, "undeploy")).To(ContainSubstring("Removed."))
		Expect(managerPod(ctx)).To(BeEmpty())
		serves(ctx)
		output, err := tryManage(ctx, "uninstall")
		Expect(err).To(HaveOccurred())
		Expect(output).To(SatisfyAll(ContainSubstring("ModelRegistry "+namespace+"/"+sample), ContainSubstring("Nothing was removed.")))
		deploy(ctx)
		expectLeader(ctx, namespace, restartTimeout)
		serves(ctx)
	}, SpecTimeout(specTimeout))

	It("is gone with all its definitions after an uninstallation, and the data of users stays", func(ctx SpecContext) {
		DeferCleanup(deployUnlessDone, NodeTimeout(podTimeout))
		claims := func() string { return kubectl(ctx, in("get", "pvc,secret", "-o", "name")...) }
		before := claims()
		Expect(before).To(SatisfyAll(ContainSubstring("persistentvolumeclaim/"+sample), ContainSubstring("secret/"+sample)))
		kubectl(ctx, in("delete", "modelregistry", sample, "--timeout=120s")...)
		// What other specs left in namespaces that are being deleted goes while the operator runs, as it should.
		Eventually(ctx, customResources).Should(BeEmpty())
		manage(ctx, "undeploy")
		manage(ctx, "uninstall")
		Expect(kubectl(ctx, "get", "crd", "-o", "name")).NotTo(ContainSubstring("opendatahub.io"))
		Eventually(ctx, func(ctx context.Context) string { return kubectl(ctx, in("get", "deployments", "-o", "name")...) }).Should(BeEmpty())
		Expect(claims()).To(Equal(before))

		By("a registry of the same name")
		deploy(ctx)
		applyRegistry(ctx, namespace)
		serves(ctx)
	}, SpecTimeout(specTimeout))
})

// tryManage runs a target of `make` that installs or removes the operator.
func tryManage(ctx context.Context, target string) (string, error) {
	command := exec.CommandContext(ctx, "make", "-s", target, "KUBECTL="+kubectlPath, "OVERLAY=kubernetes")
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

// customResources lists all objects of the operator's kinds.
func customResources(ctx context.Context) (string, error) {
	names, err := tryKubectl(ctx, "", "get", "crd", "--selector=odh-platform-operator/keep=crd", "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		return "", err
	}
	return tryKubectl(ctx, "", "get", strings.Join(strings.Fields(names), ","), "-A", "-o", "name")
}

// deployUnlessDone installs the operator for other specs after one that did not get that far.
func deployUnlessDone(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		deploy(ctx)
	}
}

// deploy installs the operator and waits until it is ready.
func deploy(ctx context.Context) {
	GinkgoHelper()
	manage(ctx, "deploy")
	rolledOut(ctx, operatorNamespace, managerDeployment)
}
