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

// [modelregistry-42] [modelregistry-51] Both conditions report why clients cannot reach the proxy. An unadmitted Route is a reason only if
// the spec enables it [D33].
func TestProxyProblemsReachTheStatus(t *testing.T) {
	ready := []corev1.ContainerStatus{readyContainer("rest-container"), readyContainer("kube-rbac-proxy")}
	for name, test := range map[string]struct {
		containers []corev1.ContainerStatus
		noRoute    bool
		admitted   bool
		message    string
	}{
		"no pod":              {nil, true, true, "No Pods found for Deployment demo: see the Events of its ReplicaSets"},
		"pod without a proxy": {[]corev1.ContainerStatus{readyContainer("rest-container")}, true, true, "kube-rbac-proxy proxy unavailable in Pod p: waiting for a Pod with the proxy"},
		"proxy is crashing":   {[]corev1.ContainerStatus{readyContainer("rest-container"), waitingContainer("kube-rbac-proxy", "CrashLoopBackOff")}, true, true, "container kube-rbac-proxy not ready in Pod p: see its log"},
		"Route not admitted": {ready, false, false,
			"KubeRBACProxy Route demo-https is unavailable: Host demo-rest.apps.example.com in Route demo-https is unavailable: waiting for a router to admit it"},
		"available":      {ready, false, true, ""},
		"Route disabled": {ready, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, optionalKinds, newSecret("ns", "pg-login"), newSecret("ns", "team-a-kube-rbac-proxy"))
			m := newRegistry("demo", registrytest.AddProxy)
			if test.noRoute {
				registrytest.DisableRoute(&m.Spec)
			}
			env.reconcileUntilIdle(m)
			env.setRunning(m)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-pod"}}
			env.requireNoError(env.server.Delete(t.Context(), pod))
			if test.containers != nil {
				other := podWith("p", test.containers...)
				other.Namespace, other.Labels = "ns", resources.ServerSelector(m)
				env.requireNoError(env.server.Create(t.Context(), &other))
			}
			if test.admitted && !test.noRoute {
				env.admit(m)
			}
			err := env.reconcile(m)
			available, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
			proxy, _ := conditions.Get(m.Status.Conditions, ConditionProxy)
			if test.message == "" {
				if err != nil || available.Reason != serving.ReasonAvailable || proxy.Reason != ReasonResourcesAvailable || proxy.Message != "kube-rbac-proxy was successfully created" {
					t.Errorf("got error %v and conditions %+v and %+v, want both available", err, available, proxy)
				}
				return
			}
			env.requireWait(err, "available")
			if available.Reason != ReasonResourcesUnavailable || available.Message != test.message || proxy.Reason != ReasonResourcesUnavailable || proxy.Message != test.message {
				t.Errorf("got conditions %+v and %+v, want both unavailable", available, proxy)
			}
		})
	}
}

// [modelregistry-52] An unavailable server makes its proxy unavailable, and the status recovers with the server.
func TestServerBecomesUnavailableAndAvailable(t *testing.T) {
	env := newTestEnv(t, []schema.GroupVersionKind{capability.Route})
	m := newRegistry("demo", registrytest.AddProxy, registrytest.DisableRoute)
	env.reconcileUntilIdle(m)
	env.setRunning(m)
	for _, available := range []bool{true, false, true} {
		d := &appsv1.Deployment{}
		env.get(d, "ns", "demo")
		d.Status.Conditions = []appsv1.DeploymentCondition{deploymentCondition(appsv1.DeploymentAvailable, map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[available], "no minimum")}
		env.requireNoError(env.server.Status().Update(t.Context(), d))
		err := env.reconcile(m)
		proxy, _ := conditions.Get(m.Status.Conditions, ConditionProxy)
		if available {
			if err != nil || proxy.Status != metav1.ConditionTrue {
				t.Errorf("got error %v and condition %+v, want True", err, proxy)
			}
			continue
		}
		env.requireWait(err, "available")
		if proxy.Reason != ReasonResourcesUnavailable || proxy.Message != "Deployment is unavailable: no minimum" {
			t.Errorf("unexpected condition %+v", proxy)
		}
	}
}

// A problem in the log of a stuck server has precedence over the status of its pods. The log is read once per restart.
func TestLogsReachTheStatus(t *testing.T) {
	env := newTestEnv(t, nil)
	env.requireNoError(env.server.Create(t.Context(), newSecret("ns", "pg-login")))
	m := newRegistry("demo")
	env.reconcileUntilIdle(m)
	d := &appsv1.Deployment{}
	env.get(d, "ns", "demo")
	d.Status.UnavailableReplicas = 1
	env.requireNoError(env.server.Status().Update(t.Context(), d))
	pod := podWith("p", waitingContainer("rest-container", "CrashLoopBackOff"))
	pod.Namespace, pod.Labels, pod.UID = "ns", resources.ServerSelector(m), "pod"
	env.requireNoError(env.server.Create(t.Context(), &pod))
	reads, text := 0, ""
	env.readPodLog = func(context.Context, types.NamespacedName, string) (string, error) {
		reads++
		return text, nil
	}
	for i, test := range []struct {
		state           corev1.ContainerStatus
		log             string
		reads           int
		reason, message string
	}{
		{waitingContainer("rest-container", "CrashLoopBackOff"), "x\nCheck failed: absl::OkStatus() == status (OK vs. INTERNAL: 1045) no access\n", 1,
			ReasonConfiguration, "database configuration error: no access: INTERNAL: 1045"},
		{waitingContainer("rest-container", "CrashLoopBackOff"), "x\n{{ALERT}} downgrade first\n", 2, ReasonAlert, "rest container alert: {{ALERT}} downgrade first"},
		{waitingContainer("rest-container", "CrashLoopBackOff"), "nothing to report\n", 3, serving.ReasonUnavailable,
			"Deployment is unavailable: pod p has unready containers [rest-container: {waiting: {reason: CrashLoopBackOff, message: m}}]"},
		{waitingContainer("rest-container", "ContainerCreating"), "{{ALERT}} of a log that is not read", 3, serving.ReasonUnavailable,
			"Deployment is unavailable: pod p has unready containers [rest-container: {waiting: {reason: ContainerCreating, message: m}}]"},
		{terminatedContainer("rest-container"), "{{ALERT}} of a log that is not read", 3, serving.ReasonUnavailable,
			"Deployment is unavailable: pod p has unready containers [rest-container: {terminated: {reason: Error, message: m}}]"},
	} {
		text, test.state.RestartCount = test.log, int32(i)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{test.state}
		env.requireNoError(env.server.Status().Update(t.Context(), &pod))
		for range 2 {
			env.requireWait(env.reconcile(m), "available")
			if got, _ := conditions.Get(m.Status.Conditions, ConditionAvailable); got.Reason != test.reason || got.Message != test.message {
				t.Errorf("step %d: got %s: %q, want %s: %q", i, got.Reason, got.Message, test.reason, test.message)
			}
		}
		if reads != test.reads {
			t.Errorf("step %d: read the log %d times, want %d", i, reads, test.reads)
		}
	}
}
