package conditions

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// pod returns a pending pod with a name as a ReplicaSet generates it, changed by the given functions.
func pod(changes ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "mlflow-6d5f9c7b8-x2x4z"},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func withUnschedulable(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		})
	}
}

func container(name string, changes ...func(*corev1.ContainerStatus)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.ContainerStatus{Name: name, Image: "quay.io/x/mlflow:1"}
		for _, change := range changes {
			change(&c)
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, c)
	}
}

func initContainer(name string, changes ...func(*corev1.ContainerStatus)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		container(name, changes...)(p)
		last := len(p.Status.ContainerStatuses) - 1
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses[last])
		p.Status.ContainerStatuses = p.Status.ContainerStatuses[:last]
	}
}

func waiting(reason, message string) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) {
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	}
}

func running(c *corev1.ContainerStatus) { c.State.Running = &corev1.ContainerStateRunning{} }

func ready(c *corev1.ContainerStatus) { c.Ready = true }

func terminated(code int32, reason string) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) {
		c.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}
	}
}

func lastTerminated(code int32, reason string) func(*corev1.ContainerStatus) {
	return func(c *corev1.ContainerStatus) {
		c.RestartCount = 7
		c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}
	}
}

func TestDiagnose(t *testing.T) {
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"no pods":  {nil, ""},
		"starting": {[]corev1.Pod{pod(container("mlflow", waiting("ContainerCreating", "")))}, ""},
		"running":  {[]corev1.Pod{pod(container("mlflow", running, ready))}, ""},
		"recovered": {
			[]corev1.Pod{pod(container("mlflow", running, ready, lastTerminated(1, "Error")))}, "",
		},
		"succeeded": {
			[]corev1.Pod{pod(container("job", terminated(1, "Error")), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, "",
		},
		"init container succeeded": {[]corev1.Pod{pod(initContainer("setup", terminated(0, "Completed")))}, ""},
		"terminating": {
			[]corev1.Pod{pod(container("mlflow", waiting("ErrImagePull", "")), func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) })}, "",
		},
		"image pull": {
			[]corev1.Pod{pod(container("mlflow", waiting("ImagePullBackOff", `Back-off pulling image "quay.io/x/mlflow:1"`)))},
			`image "quay.io/x/mlflow:1" of container mlflow cannot be pulled; check its name, the registry and the pull secrets`,
		},
		"invalid image name": {
			[]corev1.Pod{pod(container("mlflow", waiting("InvalidImageName", "")))},
			`image "quay.io/x/mlflow:1" of container mlflow is not a valid image name; correct it`,
		},
		"insufficient resources": {
			[]corev1.Pod{pod(withUnschedulable("0/6 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {gpu: true}, 3 Insufficient memory. preemption: 0/6 nodes are available: 6 Preemption is not helpful for scheduling."))},
			"the pod cannot be scheduled (Insufficient cpu, Insufficient memory, nodes had untolerated taint {gpu: true}); free capacity, or change resources, nodeSelector, affinity or tolerations",
		},
		"unbound PersistentVolumeClaim": {
			[]corev1.Pod{pod(withUnschedulable("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/3 nodes are available."))},
			"the pod cannot be scheduled (pod has unbound immediate PersistentVolumeClaims); check the PersistentVolumeClaim and its storage class",
		},
		"no nodes": {
			[]corev1.Pod{pod(withUnschedulable("no nodes available to schedule pods"))},
			"the pod cannot be scheduled because no node is available; add nodes",
		},
		"missing Secret": {
			[]corev1.Pod{pod(container("mlflow", waiting("CreateContainerConfigError", `secret "db" not found`)))},
			"container mlflow needs Secret db, which does not exist; create it",
		},
		"missing ConfigMap": {
			[]corev1.Pod{pod(initContainer("setup", waiting("CreateContainerConfigError", `configmap "settings" not found`)))},
			"container setup needs ConfigMap settings, which does not exist; create it",
		},
		"missing key": {
			[]corev1.Pod{pod(container("mlflow", waiting("CreateContainerConfigError", "couldn't find key uri in Secret default/db")))},
			"container mlflow needs key uri of Secret default/db, which does not exist; add it",
		},
		"other configuration error": {
			[]corev1.Pod{pod(container("mlflow", waiting("CreateContainerConfigError", "container has runAsNonRoot and\nimage will run as root")))},
			"container mlflow cannot be configured: container has runAsNonRoot and image will run as root",
		},
		"start error": {
			[]corev1.Pod{pod(container("mlflow", waiting("RunContainerError", "failed to start container 0123456789abcdef")))},
			"container mlflow cannot be started (RunContainerError); check its command, mounts and security context, and the events of the pod",
		},
		"crash loop": {
			[]corev1.Pod{pod(container("mlflow", waiting("CrashLoopBackOff", "back-off 5m0s"), lastTerminated(3, "Error")))},
			"container mlflow ends with exit code 3; see its log",
		},
		"crash loop with exit code 0": {
			[]corev1.Pod{pod(container("mlflow", waiting("CrashLoopBackOff", ""), lastTerminated(0, "Completed")))},
			"container mlflow ends with exit code 0; see its log",
		},
		"crash loop without last termination": {
			[]corev1.Pod{pod(container("mlflow", waiting("CrashLoopBackOff", "")))},
			"container mlflow keeps crashing; see its log",
		},
		"crash, running again": {
			[]corev1.Pod{pod(container("mlflow", running, lastTerminated(3, "Error")))},
			"container mlflow ends with exit code 3; see its log",
		},
		"crash, terminated": {
			[]corev1.Pod{pod(container("mlflow", terminated(3, "Error")))},
			"container mlflow ends with exit code 3; see its log",
		},
		"out of memory": {
			[]corev1.Pod{pod(container("mlflow", waiting("CrashLoopBackOff", ""), lastTerminated(137, "OOMKilled")))},
			"container mlflow was killed because it used more memory than its limit; raise resources.limits.memory",
		},
		"evicted": {
			[]corev1.Pod{pod(func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted",
					Message: "The node was low on resource: memory. Threshold quantity: 100Mi, available: 51000Ki. "}
			})},
			"the pod was evicted (The node was low on resource: memory); raise its requests or free the node",
		},
		"several problems": {
			[]corev1.Pod{
				pod(container("b", waiting("CrashLoopBackOff", ""), lastTerminated(1, "Error")), container("a", waiting("ErrImagePull", ""))),
				pod(container("c", waiting("CreateContainerConfigError", `secret "db" not found`))),
			},
			"container c needs Secret db, which does not exist; create it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Diagnose(tc.pods); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// drawPod draws a pod with a random combination of problems, which share one message.
func drawPod(t *rapid.T) corev1.Pod {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		`secret "db" not found`, "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.", strings.Repeat("long ", 500),
	})).Draw(t, "text")
	state := rapid.SampledFrom([]func(*corev1.ContainerStatus){
		running, terminated(1, "Error"), lastTerminated(2, "OOMKilled"), waiting("ErrImagePull", text), waiting("CrashLoopBackOff", text),
		waiting("CreateContainerConfigError", text), waiting("StartError", text), waiting("InvalidImageName", text),
	})
	p := pod()
	p.Name = "mlflow-6d5f9c7b8-" + rapid.StringMatching(`[a-z0-9]{5}`).Draw(t, "suffix")
	for i := range rapid.IntRange(0, 3).Draw(t, "containers") {
		container(fmt.Sprintf("c%d", i), state.Draw(t, "state"), state.Draw(t, "state"))(&p)
	}
	if rapid.Bool().Draw(t, "unscheduled") {
		withUnschedulable(text)(&p)
	}
	return p
}

func TestDiagnoseIsStable(t *testing.T) {
	nodeCount := regexp.MustCompile(`\d+/\d+ nodes`)
	rapid.Check(t, func(t *rapid.T) {
		pods := rapid.SliceOfN(rapid.Custom(drawPod), 0, 4).Draw(t, "pods")
		got := Diagnose(pods)
		switch {
		case len(got) > maxDiagnosisBytes:
			t.Fatalf("got %d bytes, want at most %d", len(got), maxDiagnosisBytes)
		case strings.ContainsAny(got, "\n\r\t"):
			t.Fatalf("got %q, want one line", got)
		case strings.Contains(got, "6d5f9c7b8"):
			t.Fatalf("got %q, which contains a generated name", got)
		case nodeCount.MatchString(got) && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return len(p.Status.ContainerStatuses) > 0 }):
			t.Fatalf("got %q, which contains a number of nodes", got)
		}
		shuffled := rapid.Permutation(pods).Draw(t, "shuffled")
		for i := range shuffled {
			shuffled[i].Name = fmt.Sprintf("other-%d", i)
		}
		if again := Diagnose(shuffled); again != got {
			t.Fatalf("got %q for other names and another order, want %q", again, got)
		}
	})
}

// The scheduler sorts the reasons by the number of nodes, which changes.
func TestUnschedulableIgnoresCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reasons := []string{"Insufficient cpu", "Insufficient memory", "node(s) didn't match Pod's node affinity/selector"}
		message := func(label string) string {
			var parts []string
			for _, reason := range rapid.Permutation(reasons).Draw(t, label) {
				parts = append(parts, fmt.Sprintf("%d %s", rapid.IntRange(1, 500).Draw(t, label), reason))
			}
			return fmt.Sprintf("0/%d nodes are available: %s.", rapid.IntRange(3, 900).Draw(t, label), strings.Join(parts, ", "))
		}
		if a, b := unschedulable(message("a")), unschedulable(message("b")); a != b {
			t.Fatalf("got %q and %q, want equal results", a, b)
		}
	})
}
