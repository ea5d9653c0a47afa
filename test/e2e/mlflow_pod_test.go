//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	//go:embed testdata/mlflow_writer.py
	mlflowWriter string
	//go:embed testdata/mlflow_missing.py
	mlflowMissing string
)

const (
	// throttled is the name of a server with a low CPU limit.
	throttled = "mlflow-throttled"
	// livenessLimit is the time after which the liveness probe would restart a server without a startup probe.
	livenessLimit = 60 * time.Second
)

// startWriter starts a client that writes in the background. It stops the client after the spec.
func (t mlflowTeam) startWriter(ctx context.Context) {
	GinkgoHelper()
	_, err := tryKubectl(ctx, mlflowWriter, "-n", t.namespace, "exec", "-i", "client", "--", "sh", "-c",
		"rm -f /tmp/stop; cat > /tmp/writer.py; python3 -u /tmp/writer.py > /tmp/acknowledged 2> /tmp/writer.log < /dev/null &")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) error {
		_, err := runInPod(ctx, t.namespace, "client", "touch /tmp/stop")
		return err
	})
	t.waitForWrites(ctx)
}

// waitForWrites waits until the server has acknowledged more writes.
func (t mlflowTeam) waitForWrites(ctx context.Context) {
	GinkgoHelper()
	count := func(ctx context.Context) (int, error) {
		output, err := runInPod(ctx, t.namespace, "client", "wc -l < /tmp/acknowledged")
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(output)
	}
	before, err := count(ctx)
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, count, podTimeout).Should(BeNumerically(">", before+5), "no more writes are acknowledged")
}

// listServerPods returns the pods of a server.
func listServerPods(ctx context.Context, app string) []corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(env.Admin.List(ctx, &pods, client.InNamespace(operatorNamespace), client.MatchingLabels{"app": app})).To(Succeed())
	return pods.Items
}

// serverProcesses returns the uvicorn processes of MLflow in a pod.
func serverProcesses(pod types.UID) []int {
	GinkgoHelper()
	var found []int
	for _, pid := range podProcesses(string(pod)) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.Contains(command, []byte("\x00uvicorn\x00")) {
			found = append(found, pid)
		}
	}
	return found
}

// replaceServer deletes the pod of the server while a client writes. It expects that the new server starts only after the previous one has
// exited, which an open connection delays, and that no acknowledged write is lost.
func replaceServer(ctx context.Context, team mlflowTeam) {
	GinkgoHelper()
	team.startWriter(ctx)
	pods := listServerPods(ctx, "mlflow")
	Expect(pods).To(HaveLen(1))
	previous := pods[0]
	serverPIDs := serverProcesses(previous.UID)
	Expect(serverPIDs).NotTo(BeEmpty(), "no server process found")
	kubectl(ctx, "-n", operatorNamespace, "delete", "pod", previous.Name, "--wait=false")
	nextPod := func(ctx context.Context) *corev1.Pod {
		return waitSinglePod(ctx, operatorNamespace, client.MatchingLabels{"app": "mlflow"})
	}
	Eventually(ctx, func(ctx context.Context) (string, error) {
		return tryKubectl(ctx, "", "-n", operatorNamespace, "logs", nextPod(ctx).Name)
	}, podTimeout).Should(ContainSubstring("Another server still uses this volume"))
	Expect(serverProcesses(nextPod(ctx).UID)).To(BeEmpty())
	Expect(serverProcesses(previous.UID)).NotTo(BeEmpty(), "the first server has already exited")
	for _, pid := range serverPIDs { // without the signal, each would exit after up to a minute
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	Eventually(ctx, func(ctx context.Context) (bool, error) {
		if len(serverProcesses(previous.UID)) > 0 && len(serverProcesses(nextPod(ctx).UID)) > 0 {
			return false, StopTrying("two servers use one file")
		}
		return !readySince(nextPod(ctx)).IsZero(), nil
	}, podTimeout).Should(BeTrue())
	team.waitForWrites(ctx)
	Expect(team.python(ctx, team.namespace, mlflowMissing)).To(BeEmpty())
}

// startThrottledServer creates a server from the pod template of the MLflow, with a low CPU limit and its own volume. It does not wait
// for the server: other specs run during its startup.
func startThrottledServer(ctx context.Context) {
	GinkgoHelper()
	var server appsv1.Deployment
	Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "mlflow"}, &server)).To(Succeed())
	labels := map[string]string{"app": throttled}
	slow := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: throttled}, Spec: server.Spec}
	slow.Spec.Selector, slow.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	slow.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("70m")}}
	for i := range slow.Spec.Template.Spec.Volumes {
		volume := &slow.Spec.Template.Spec.Volumes[i]
		if volume.PersistentVolumeClaim != nil {
			volume.VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
	}
	Expect(env.Admin.Create(ctx, slow)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { kubectl(ctx, "-n", operatorNamespace, "delete", "deployment", throttled) })
}

// expectThrottled waits until the throttled server is ready, and returns its startup time and number of restarts.
func expectThrottled(ctx context.Context) (startup time.Duration, restarts int32) {
	GinkgoHelper()
	waitRollout(ctx, operatorNamespace, "deployment/"+throttled)
	pods := listServerPods(ctx, throttled)
	Expect(pods).To(HaveLen(1))
	status := pods[0].Status.ContainerStatuses[0]
	Expect(status.State.Running).NotTo(BeNil())
	return readySince(&pods[0]).Sub(status.State.Running.StartedAt.Time), status.RestartCount
}
