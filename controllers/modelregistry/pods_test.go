package modelregistry

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// podWith returns a pod with container statuses.
func podWith(name string, containers ...corev1.ContainerStatus) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, c := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c.Name})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, c)
	}
	return pod
}

func readyContainer(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Ready: true}
}

func waitingContainer(name, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "m"}}}
}

func terminatedContainer(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", Message: "m"}}}
}

func terminating(pod corev1.Pod) corev1.Pod {
	pod.DeletionTimestamp = new(metav1.Now())
	return pod
}

// [modelregistry-42] [modelregistry-43] [modelregistry-44] [modelregistry-45] [modelregistry-46] [modelregistry-47]
// [modelregistry-48] [modelregistry-49] [modelregistry-50] [modelregistry-51] Messages about the pods of a proxy.
func TestCheckProxyPodsNamesTheUnreadyContainer(t *testing.T) {
	ready := podWith("ready", readyContainer("rest-container"), readyContainer("kube-rbac-proxy"))
	creating := podWith("creating", readyContainer("rest-container"), waitingContainer("kube-rbac-proxy", "ContainerCreating"))
	crashing := podWith("crashing", waitingContainer("rest-container", "CrashLoopBackOff"), readyContainer("kube-rbac-proxy"))
	pending := podWith("pending", readyContainer("rest-container"), readyContainer("kube-rbac-proxy"))
	pending.Status.ContainerStatuses = nil
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"no pods":                       {nil, "No Pods found for Deployment demo: see the Events of its ReplicaSets"},
		"without a proxy":               {[]corev1.Pod{podWith("unproxied", readyContainer("rest-container"))}, "kube-rbac-proxy proxy unavailable in Pod unproxied: waiting for a Pod with the proxy"},
		"all containers ready":          {[]corev1.Pod{ready}, ""},
		"proxy is creating":             {[]corev1.Pod{creating}, "container kube-rbac-proxy not ready in Pod creating: see its log"},
		"server is crashing":            {[]corev1.Pod{crashing}, "container rest-container not ready in Pod crashing: see its log"},
		"no container statuses":         {[]corev1.Pod{pending}, "container status not yet available in Pod pending: waiting for the kubelet"},
		"one of two is ready":           {[]corev1.Pod{creating, ready}, ""},
		"other pod terminating":         {[]corev1.Pod{terminating(crashing), ready}, ""},
		"all pods terminating":          {[]corev1.Pod{terminating(ready), terminating(crashing)}, "No active Pods found for Deployment demo: waiting for new Pods"},
		"several unready pods":          {[]corev1.Pod{creating, crashing}, "container rest-container not ready in Pod crashing: see its log"},
		"ready sidecar of a mesh [D17]": {[]corev1.Pod{podWith("mesh", readyContainer("rest-container"), readyContainer("kube-rbac-proxy"), readyContainer("istio-proxy"))}, ""},
		"unready sidecar of a mesh": {[]corev1.Pod{podWith("mesh", readyContainer("rest-container"), readyContainer("kube-rbac-proxy"), waitingContainer("istio-proxy", "x"))},
			"container istio-proxy not ready in Pod mesh: see its log"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := checkProxyPods("demo", test.pods); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A rejection by a router is reported with reason RouteNotAdmitted; package routestatus tests how Routes are read.
func TestCheckRoute(t *testing.T) {
	const notAdmitted = "KubeRBACProxy Route demo-https is unavailable: Host h in Route demo-https is unavailable: waiting for a router to admit it"
	for status, want := range map[string]conditionReason{
		"":        {message: notAdmitted},
		"Unknown": {message: notAdmitted},
		"True":    {},
		"False":   {"RouteNotAdmitted", "router default does not admit Route ns/demo-https with host h (HostAlreadyClaimed): taken"},
	} {
		route := newUnstructured(capability.Route)
		route.SetName("demo-https")
		route.SetNamespace("ns")
		route.Object["spec"] = map[string]any{"host": "h"}
		if status != "" {
			route.Object["status"] = map[string]any{"ingress": []any{map[string]any{"routerName": "default", "conditions": []any{
				map[string]any{"type": "Admitted", "status": status, "reason": "HostAlreadyClaimed", "message": "taken"},
			}}}}
		}
		if got := checkRoute(decode[routev1.Route](t, route)); got != want {
			t.Errorf("%q: got %+v, want %+v", status, got, want)
		}
	}
}

func TestUnreadyContainers(t *testing.T) {
	pod := podWith("p", readyContainer("a"), waitingContainer("b", "ImagePullBackOff"), terminatedContainer("c"), corev1.ContainerStatus{Name: "d"})
	const want = "b: {waiting: {reason: ImagePullBackOff, message: m}}, c: {terminated: {reason: Error, message: m}}"
	if got := unreadyContainers(&pod); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Reason and message are the same for each restart and each attempt to pull the image.
func TestStableWaiting(t *testing.T) {
	for name, test := range map[string]struct{ reason, message, wantReason, wantMessage string }{
		"crash":           {"CrashLoopBackOff", "back-off 2m40s restarting failed container=a", "CrashLoopBackOff", "restarting failed container=a"},
		"failed pull":     {"ErrImagePull", "x: not found", "ImagePullBackOff", "x: not found"},
		"waiting to pull": {"ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: x: not found`, "ImagePullBackOff", "x: not found"},
		"other":           {"CreateContainerError", "back-off 1s", "CreateContainerError", "back-off 1s"},
	} {
		reason, message := stableWaiting(&corev1.ContainerStateWaiting{Reason: test.reason, Message: test.message})
		if reason != test.wantReason || message != test.wantMessage {
			t.Errorf("%s: got %s: %s, want %s: %s", name, reason, message, test.wantReason, test.wantMessage)
		}
	}
}

// [D18] A container in its normal start, such as one that waits for init containers, is not stuck.
func TestIsStuck(t *testing.T) {
	for reason, want := range map[string]bool{"ContainerCreating": false, "PodInitializing": false, "": false, "CrashLoopBackOff": true, "ImagePullBackOff": true} {
		if got := isStuck(waitingContainer("rest-container", reason)); got != want {
			t.Errorf("isStuck with reason %q: got %v, want %v", reason, got, want)
		}
	}
	if isStuck(readyContainer("rest-container")) || isStuck(terminatedContainer("rest-container")) {
		t.Error("a ready or terminated container counts as stuck")
	}
}

func TestTrimPodRemovesUnusedFields(t *testing.T) {
	pod := podWith("p", readyContainer("a"), readyContainer("b"))
	pod.Labels, pod.Annotations = map[string]string{"app": "demo"}, map[string]string{"big": "x"}
	pod.Spec.Containers[0].Image, pod.Spec.NodeName = "i", "n"
	out, err := trimPod(&pod)
	if err != nil {
		t.Fatal(err)
	}
	trimmed, ok := out.(*corev1.Pod)
	if !ok || trimmed.Annotations != nil || trimmed.Spec.NodeName != "" || trimmed.Spec.Containers[0].Image != "" {
		t.Errorf("unused fields were not removed: %+v", out)
	}
	if trimmed.Labels["app"] != "demo" || trimmed.Spec.Containers[1].Name != "b" || len(trimmed.Status.ContainerStatuses) != 2 {
		t.Errorf("used fields were removed: %+v", trimmed)
	}
	if other, err := trimPod("tombstone"); other != "tombstone" || err != nil {
		t.Error("trimPod changed an object that is not a Pod")
	}
}
