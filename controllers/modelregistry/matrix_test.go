package modelregistry

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// [modelregistry-42] [modelregistry-51] Both conditions report why callers cannot reach the proxy; the Route counts only if the cluster
// serves it and the spec enables it [D33].
func TestProxyProblemsReachTheStatus(t *testing.T) {
	good := []corev1.ContainerStatus{readyContainer("rest-container"), readyContainer("kube-rbac-proxy")}
	for name, c := range map[string]struct {
		pod      []corev1.ContainerStatus
		noRoute  bool
		admitted bool
		message  string
	}{
		"no pod":               {nil, true, true, "No Pods found for Deployment demo: see the Events of its ReplicaSets"},
		"no proxy":             {[]corev1.ContainerStatus{readyContainer("rest-container")}, true, true, "kube-rbac-proxy proxy unavailable in Pod p: waiting for a Pod with the proxy"},
		"a proxy that crashes": {[]corev1.ContainerStatus{readyContainer("rest-container"), waitingContainer("kube-rbac-proxy", "CrashLoopBackOff")}, true, true, "container kube-rbac-proxy not ready in Pod p: see its log"},
		"no one admits the Route": {good, false, false,
			"KubeRBACProxy Route demo-https is unavailable: Host demo-rest.apps.example.com in Route demo-https is unavailable: waiting for a router to admit it"},
		"all is well":     {good, false, true, ""},
		"without a Route": {good, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, everything, newSecret("ns", "pg-login"), newSecret("ns", "team-a-kube-rbac-proxy"))
			m := newRegistry("demo", registrytest.Proxied)
			if c.noRoute {
				registrytest.Unrouted(&m.Spec)
			}
			w.reconcileOnce(m)
			w.setRunning(m)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-pod"}}
			w.requireNoError(w.server.Delete(t.Context(), pod))
			if c.pod != nil {
				other := podWith("p", c.pod...)
				other.Namespace, other.Labels = "ns", resources.ServerSelector(m)
				w.requireNoError(w.server.Create(t.Context(), &other))
			}
			if c.admitted && !c.noRoute {
				w.admit(m)
			}
			err := w.reconcile(m)
			available, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
			proxy, _ := conditions.Get(m.Status.Conditions, ConditionProxy)
			if c.message == "" {
				if err != nil || available.Reason != serving.ReasonAvailable || proxy.Reason != ReasonResourcesAvailable || proxy.Message != "kube-rbac-proxy was successfully created" {
					t.Errorf("got error %v and conditions %+v and %+v, want both available", err, available, proxy)
				}
				return
			}
			w.requireWait(err, "available")
			if available.Reason != ReasonResourcesUnavailable || available.Message != c.message || proxy.Reason != ReasonResourcesUnavailable || proxy.Message != c.message {
				t.Errorf("got conditions %+v and %+v, want both unavailable", available, proxy)
			}
		})
	}
}

// [modelregistry-52] An unavailable server makes its proxy unavailable, and the status recovers with the server.
func TestServerBecomesUnavailableAndAvailable(t *testing.T) {
	w := newTestEnv(t, []schema.GroupVersionKind{capability.Route})
	m := newRegistry("demo", registrytest.Proxied, registrytest.Unrouted)
	w.reconcileOnce(m)
	w.setRunning(m)
	for _, up := range []bool{true, false, true} {
		d := &appsv1.Deployment{}
		w.get(d, "ns", "demo")
		d.Status.Conditions = []appsv1.DeploymentCondition{deploymentCondition(appsv1.DeploymentAvailable, map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[up], "no minimum")}
		w.requireNoError(w.server.Status().Update(t.Context(), d))
		err := w.reconcile(m)
		proxy, _ := conditions.Get(m.Status.Conditions, ConditionProxy)
		if up {
			if err != nil || proxy.Status != metav1.ConditionTrue {
				t.Errorf("got error %v and condition %+v, want True", err, proxy)
			}
			continue
		}
		w.requireWait(err, "available")
		if proxy.Reason != ReasonResourcesUnavailable || proxy.Message != "Deployment is unavailable: no minimum" {
			t.Errorf("unexpected proxy: %+v", proxy)
		}
	}
}

// The log of a failed server has precedence over the status of its pods; each run is read once.
func TestLogsReachTheStatus(t *testing.T) {
	w := newTestEnv(t, nil)
	w.requireNoError(w.server.Create(t.Context(), newSecret("ns", "pg-login")))
	m := newRegistry("demo")
	w.reconcileOnce(m)
	d := &appsv1.Deployment{}
	w.get(d, "ns", "demo")
	d.Status.UnavailableReplicas = 1
	w.requireNoError(w.server.Status().Update(t.Context(), d))
	pod := podWith("p", waitingContainer("rest-container", "CrashLoopBackOff"))
	pod.Namespace, pod.Labels, pod.UID = "ns", resources.ServerSelector(m), "pod"
	w.requireNoError(w.server.Create(t.Context(), &pod))
	reads, text := 0, ""
	w.readPodLog = func(context.Context, types.NamespacedName, string) (string, error) {
		reads++
		return text, nil
	}
	for i, c := range []struct {
		state        corev1.ContainerStatus
		log          string
		reads        int
		reason, says string
	}{
		{waitingContainer("rest-container", "CrashLoopBackOff"), "x\nCheck failed: absl::OkStatus() == status (OK vs. INTERNAL: 1045) no access\n", 1,
			ReasonConfiguration, "database configuration error: no access: INTERNAL: 1045"},
		{waitingContainer("rest-container", "CrashLoopBackOff"), "x\n{{ALERT}} downgrade first\n", 2, ReasonAlert, "rest container alert: {{ALERT}} downgrade first"},
		{waitingContainer("rest-container", "CrashLoopBackOff"), "nothing to report\n", 3, serving.ReasonUnavailable,
			"Deployment is unavailable: pod p has unready containers [rest-container: {waiting: {reason: CrashLoopBackOff, message: m}}]"},
		{waitingContainer("rest-container", "ContainerCreating"), "{{ALERT}} of no one", 3, serving.ReasonUnavailable,
			"Deployment is unavailable: pod p has unready containers [rest-container: {waiting: {reason: ContainerCreating, message: m}}]"},
		{terminatedContainer("rest-container"), "{{ALERT}} of no one", 3, serving.ReasonUnavailable,
			"Deployment is unavailable: pod p has unready containers [rest-container: {terminated: {reason: Error, message: m}}]"},
	} {
		text, c.state.RestartCount = c.log, int32(i)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{c.state}
		w.requireNoError(w.server.Status().Update(t.Context(), &pod))
		for range 2 {
			w.requireWait(w.reconcile(m), "available")
			if got, _ := conditions.Get(m.Status.Conditions, ConditionAvailable); got.Reason != c.reason || got.Message != c.says {
				t.Errorf("step %d: %s: %q", i, got.Reason, got.Message)
			}
		}
		if reads != c.reads {
			t.Errorf("step %d: read %d times", i, reads)
		}
	}
}
