package modelregistry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

func deploymentCondition(conditionType appsv1.DeploymentConditionType, status corev1.ConditionStatus, message string) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: conditionType, Status: status, Message: message, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}
}

// Only updates about the start of a server may wait. A change of its availability or of condition EarlierData is stored immediately.
func TestMayWait(t *testing.T) {
	with := func(available metav1.ConditionStatus, reason string, others ...string) *v1beta1.ModelRegistry {
		m := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		m.Status.ObservedGeneration = 2
		setCondition(m, ConditionAvailable, available, reason, "")
		for _, other := range others {
			setCondition(m, other, metav1.ConditionTrue, "Any", "")
		}
		return m
	}
	starting, cooling := with(metav1.ConditionFalse, serving.ReasonStarting), with(metav1.ConditionFalse, serving.ReasonCooldown)
	available := with(metav1.ConditionTrue, serving.ReasonAvailable)
	for name, test := range map[string]struct {
		before, after *v1beta1.ModelRegistry
		want          bool
	}{
		"first update of a generation": {&v1beta1.ModelRegistry{}, starting, false},
		"failure":                      {starting, with(metav1.ConditionFalse, serving.ReasonUnavailable), false},
		"next step of the start":       {starting, cooling, true},
		"available":                    {cooling, available, false},
		"unavailable":                  {available, starting, false},
		"earlier data":                 {starting, with(metav1.ConditionFalse, serving.ReasonStarting, ConditionEarlierData), false},
	} {
		if got := mayWait(test.before, test.after); got != test.want {
			t.Errorf("%s: mayWait returned %t, want %t", name, got, test.want)
		}
	}
}

// Condition Available reports each step from the creation of a registry until its server is available.
func TestConditionsUntilAvailable(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", registrytest.AddProxy)
	expect := func(wait string, reason, message string) {
		t.Helper()
		err := env.reconcile(m)
		if wait != "" {
			env.requireWait(err, wait)
		} else if err != nil {
			t.Errorf("got error %v", err)
		}
		c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
		if c.Reason != reason || c.Message != message {
			t.Errorf("got %s: %q, want %s: %q", c.Reason, c.Message, reason, message)
		}
	}
	expect("available", serving.ReasonStarting, "Deployment is unavailable: the Deployment controller has not processed it yet")
	d := &appsv1.Deployment{}
	setStatus := func(unavailable int32, c ...appsv1.DeploymentCondition) {
		t.Helper()
		env.get(d, "ns", "demo")
		d.Status.UnavailableReplicas, d.Status.Conditions = unavailable, c
		env.requireNoError(env.server.Status().Update(t.Context(), d))
	}
	setStatus(1, deploymentCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "no minimum availability"))
	expect("available", serving.ReasonUnavailable, "Deployment is unavailable: Secret pg-login does not exist; create it")
	env.requireNoError(env.server.Create(t.Context(), newSecret("ns", "pg-login")))
	expect("available", serving.ReasonUnavailable, "Deployment is unavailable: Secret team-a-kube-rbac-proxy does not exist; create it")
	env.requireNoError(env.server.Create(t.Context(), newSecret("ns", "team-a-kube-rbac-proxy")))
	expect("available", serving.ReasonStarting, "Deployment is unavailable: 1 containers unavailable: waiting for its Pods")
	pod := podWith("p", waitingContainer("rest-container", "ImagePullBackOff"), readyContainer("kube-rbac-proxy"))
	pod.Namespace, pod.Labels = "ns", resources.ServerSelector(m)
	env.requireNoError(env.server.Create(t.Context(), &pod))
	expect("available", serving.ReasonUnavailable, "Deployment is unavailable: pod p has unready containers [rest-container: {waiting: {reason: ImagePullBackOff, message: m}}]")
	pod.Status.ContainerStatuses[0] = readyContainer("rest-container")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "Gate", Message: "closed"}}
	env.requireNoError(env.server.Status().Update(t.Context(), &pod))
	expect("available", serving.ReasonStarting, "Deployment is unavailable: pod p containers not ready: {reason: Gate, message: closed}")
	setStatus(0, deploymentCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "up"))
	expect("available", serving.ReasonUnavailable, "Service endpoints not found: Service demo has no EndpointSlice")
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Labels: map[string]string{discoveryv1.LabelServiceName: "demo"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}},
	}
	env.requireNoError(env.server.Create(t.Context(), slice))
	expect("available", serving.ReasonUnavailable, "Service endpoints not ready - no ready addresses available")
	slice.Endpoints[0].Conditions.Ready = new(true)
	env.requireNoError(env.server.Update(t.Context(), slice))
	expect("", serving.ReasonAvailable, "Deployment is available")
	if reasonOf(m, ConditionProxy) != ReasonResourcesAvailable {
		t.Errorf("conditions %v", m.Status.Conditions)
	}
}

// A Deployment counts as available after five seconds, and the reconcile is requeued until then.
func TestDeploymentIsAvailableAfterFiveSeconds(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo")
	env.requireWait(env.reconcile(m), "available")
	env.setRunning(m)
	d := &appsv1.Deployment{}
	env.get(d, "ns", "demo")
	d.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Second))
	env.requireNoError(env.server.Status().Update(t.Context(), d))
	err := env.reconcile(m)
	env.requireWait(err, "become available")
	if wait, ok := errors.AsType[*reconciler.Wait](err); !ok || wait.Retry != 4*time.Second || reasonOf(m, ConditionAvailable) != serving.ReasonCooldown {
		t.Errorf("got error %v and conditions %v, want a Wait of 4 s", err, m.Status.Conditions)
	}
}

// An available registry remains so while a pod serves, and its status reports the problem of the rollout.
func TestAvailableIsKeptDuringRollout(t *testing.T) {
	env := newTestEnv(t, nil, newSecret("ns", "pg-login"))
	m := newRegistry("demo")
	env.requireWait(env.reconcile(m), "available")
	env.setRunning(m)
	env.requireNoError(env.reconcile(m))
	d := &appsv1.Deployment{}
	env.get(d, "ns", "demo")
	for _, step := range []struct {
		name                   string
		available, unavailable int32
		condition              appsv1.DeploymentCondition
		status                 metav1.ConditionStatus
		message, wait          string
	}{
		{"more replicas", 1, 1, deploymentCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "few"), metav1.ConditionTrue, "Deployment is available", "the rollout to end"},
		{"new pod rejected by the quota", 1, 0, deploymentCondition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "exceeded quota"), metav1.ConditionTrue,
			"Deployment is available; the rollout of the current spec is not finished: Deployment is unavailable: pods cannot be created: exceeded quota", "the rollout to end"},
		{"no pod available", 0, 1, deploymentCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "none"), metav1.ConditionFalse,
			"Deployment is unavailable: 1 containers unavailable: waiting for its Pods", "become available"},
		{"one pod available again", 1, 1, deploymentCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "few"), metav1.ConditionFalse,
			"Deployment is unavailable: 1 containers unavailable: waiting for its Pods", "become available"},
	} {
		d.Status.AvailableReplicas, d.Status.UnavailableReplicas, d.Status.Conditions = step.available, step.unavailable, []appsv1.DeploymentCondition{step.condition}
		env.requireNoError(env.server.Status().Update(t.Context(), d))
		env.requireWait(env.reconcile(m), step.wait)
		c := meta.FindStatusCondition(m.Status.Conditions, ConditionAvailable)
		if c.Status != step.status || c.Message != step.message {
			t.Errorf("%s: got Available=%s: %q, want %s: %q", step.name, c.Status, c.Message, step.status, step.message)
		}
	}
}

// [D18] Problems of the database are reported as such and not as problems of the server's pods.
func TestDatabasePodsAreNotServerPods(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	env.requireWait(env.reconcile(m), "available")
	d := &appsv1.Deployment{}
	env.get(d, "ns", "demo")
	d.Status.UnavailableReplicas = 1
	env.requireNoError(env.server.Status().Update(t.Context(), d))
	pod := podWith("db", waitingContainer("postgres", "ImagePullBackOff"))
	pod.Namespace, pod.Labels = "ns", resources.DatabaseSelector(m)
	env.requireNoError(env.server.Create(t.Context(), &pod))
	env.requireWait(env.reconcile(m), "available")
	c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
	if !strings.HasPrefix(c.Message, "Deployment is unavailable: 1 containers unavailable: waiting for its Pods; its database: image") || strings.Contains(c.Message, "pod db") {
		t.Errorf("message %q", c.Message)
	}
	env.requireNoError(env.server.Delete(t.Context(), &pod))
	server := podWith("demo-1")
	server.Namespace, server.Labels = "ns", resources.ServerSelector(m)
	server.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "starting"}}
	env.requireNoError(env.server.Create(t.Context(), &server))
	database := &appsv1.Deployment{}
	env.get(database, "ns", resources.DatabaseName(m))
	database.Status.Conditions = []appsv1.DeploymentCondition{deploymentCondition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "exceeded quota: small")}
	env.requireNoError(env.server.Status().Update(t.Context(), database))
	env.requireWait(env.reconcile(m), "available")
	c, _ = conditions.Get(m.Status.Conditions, ConditionAvailable)
	if !strings.HasSuffix(c.Message, "; its database: pods cannot be created: exceeded quota: small") || c.Reason != serving.ReasonUnavailable {
		t.Errorf("unexpected condition %s: %q", c.Reason, c.Message)
	}
}

// The condition quotes the errors of pods that cannot be created or scheduled.
func TestMissingPodsAreReported(t *testing.T) {
	env := newTestEnv(t, nil, newSecret("ns", "pg-login"))
	m := newRegistry("demo")
	env.requireWait(env.reconcile(m), "available")
	d := &appsv1.Deployment{}
	expect := func(want string) {
		t.Helper()
		env.requireWait(env.reconcile(m), "available")
		if c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable); c.Message != "Deployment is unavailable: "+want || c.Reason != serving.ReasonUnavailable {
			t.Errorf("unexpected condition %s: %q", c.Reason, c.Message)
		}
	}
	env.get(d, "ns", "demo")
	d.Status.UnavailableReplicas = 1 // the Deployment controller counts pods that could not be created
	d.Status.Conditions = []appsv1.DeploymentCondition{deploymentCondition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "exceeded quota: small")}
	env.requireNoError(env.server.Status().Update(t.Context(), d))
	expect("pods cannot be created: exceeded quota: small")
	d.Status.Conditions = nil
	env.requireNoError(env.server.Status().Update(t.Context(), d))
	pod := podWith("demo-1")
	pod.Namespace, pod.Labels = "ns", resources.ServerSelector(m)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."}}
	env.requireNoError(env.server.Create(t.Context(), &pod))
	expect("the pod cannot be scheduled (nodes didn't match Pod's node affinity/selector); free capacity, or change resources, nodeSelector, affinity or tolerations")
}

// Conditions do not change until the Deployment controller has observed the current generation.
func TestWaitsForObservedGeneration(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo")
	env.requireWait(env.reconcile(m), "available")
	env.setRunning(m)
	env.requireNoError(env.reconcile(m))
	d := &appsv1.Deployment{}
	env.get(d, "ns", "demo")
	d.Generation = 7
	env.requireNoError(env.server.Update(t.Context(), d))
	env.requireWait(env.reconcile(m), "Deployment controller")
	if reasonOf(m, ConditionAvailable) != serving.ReasonAvailable {
		t.Errorf("conditions %v", m.Status.Conditions)
	}
}

// The condition of the proxy is removed with the proxy.
func TestProxyConditionIsRemoved(t *testing.T) {
	m := newRegistry("demo", registrytest.AddProxy)
	setCondition(m, ConditionProxy, metav1.ConditionTrue, "Old", "old")
	env := newTestEnv(t, nil)
	for _, want := range []int{1, 0} {
		env.requireNoError(env.removeOutdatedConditions(t.Context(), m))
		if len(m.Status.Conditions) != want {
			t.Errorf("got conditions %v, want %d", m.Status.Conditions, want)
		}
		m.Spec.KubeRBACProxy = nil
	}
}

// On OpenShift, the reconcile waits until the cluster reports its domain, unless a domain is configured.
func TestWaitForDomain(t *testing.T) {
	for name, test := range map[string]struct {
		openShift bool
		setting   string
		domain    fixedDomain
		wantWait  bool
	}{
		"not reported yet": {true, "", "", true},
		"reported":         {true, "", "apps", false},
		"configured":       {true, "mine", "", false},
		"plain Kubernetes": {false, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, nil)
			if test.openShift {
				env = newTestEnv(t, openShiftConfig)
			}
			env.domain, env.settings.DefaultDomain = test.domain, test.setting
			env.requireNoError(env.waitForPlatform(t.Context(), newRegistry("demo")))
			if err := env.waitForDomain(t.Context(), newRegistry("demo")); (err != nil) != test.wantWait {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// ENABLE_WEBHOOKS=false: a reconcile validates the spec, and writes no object for an invalid one.
func TestChecksWithoutWebhooks(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", func(s *v1beta1.ModelRegistrySpec) { s.Postgres = &v1beta1.PostgresConfig{} })
	env.settings.ValidateInReconciler = true
	env.requireWait(env.reconcile(m), "valid spec")
	c, _ := conditions.Get(m.Status.Conditions, ConditionAvailable)
	if !strings.Contains(c.Message, "required one of `postgres` or `mysql` database") || env.takeWrites() != "" {
		t.Errorf("message %q", c.Message)
	}
	m.Spec.Postgres = registrytest.Registry().Spec.Postgres
	env.settings.Namespace = "ns"
	env.requireWait(env.reconcile(m), "available")
}

// The problem in the log of a crashing server is reported while the container restarts, too.
func TestProblemInLogIsKeptDuringRestarts(t *testing.T) {
	env := newTestEnv(t, nil)
	env.requireNoError(env.server.Create(t.Context(), newSecret("ns", "pg-login")))
	m := newRegistry("demo")
	env.reconcileUntilIdle(m)
	d := &appsv1.Deployment{}
	env.get(d, "ns", "demo")
	d.Status.UnavailableReplicas = 1
	env.requireNoError(env.server.Status().Update(t.Context(), d))
	pod := podWith("p")
	pod.Namespace, pod.Labels, pod.UID = "ns", resources.ServerSelector(m), "pod"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
	env.requireNoError(env.server.Create(t.Context(), &pod))
	env.readPodLog = func(context.Context, types.NamespacedName, string) (string, error) {
		return "Retrying connection to PostgreSQL (attempt 1/10): no access\n", nil
	}
	running := corev1.ContainerStatus{Name: "rest-container", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	for restarts, state := range []corev1.ContainerStatus{
		waitingContainer("rest-container", "CrashLoopBackOff"), running, terminatedContainer("rest-container"), waitingContainer("rest-container", "CrashLoopBackOff"),
	} {
		state.RestartCount = int32(restarts)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{state}
		env.requireNoError(env.server.Status().Update(t.Context(), &pod))
		env.requireWait(env.reconcile(m), "available")
		env.expectCondition(m, ConditionAvailable, ReasonConfiguration, "no access")
	}
}

// An evicted pod that was replaced is not reported as the cause, and a normal start is not reported as a failure.
func TestReplacedFailedPodsAreNotDiagnosed(t *testing.T) {
	env := newTestEnv(t, nil)
	m := newRegistry("demo", withGeneratedDatabase)
	env.requireWait(env.reconcile(m), "available")
	d := &appsv1.Deployment{}
	env.get(d, "ns", "demo")
	d.Status.UnavailableReplicas = 1
	env.requireNoError(env.server.Status().Update(t.Context(), d))
	add := func(name string, age time.Duration, labels map[string]string, containers ...corev1.ContainerStatus) corev1.Pod {
		pod := podWith(name, containers...)
		pod.Namespace, pod.Labels, pod.CreationTimestamp = "ns", labels, metav1.NewTime(now.Add(-age))
		if age > 0 {
			pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "low on resource: memory"
		}
		env.requireNoError(env.server.Create(t.Context(), &pod))
		return pod
	}
	add("db-old", time.Hour, resources.DatabaseSelector(m), terminatedContainer("postgres"))
	add("db-new", 0, resources.DatabaseSelector(m), waitingContainer("postgres", "ContainerCreating"))
	add("old", time.Hour, resources.ServerSelector(m), terminatedContainer("rest-container"))
	current := add("new", 0, resources.ServerSelector(m), waitingContainer("rest-container", "ContainerCreating"))
	env.requireWait(env.reconcile(m), "available")
	env.expectCondition(m, ConditionAvailable, serving.ReasonStarting, "pod new has unready containers")
	current.Status.ContainerStatuses = []corev1.ContainerStatus{waitingContainer("rest-container", "ErrImagePull")}
	env.requireNoError(env.server.Status().Update(t.Context(), &current))
	env.requireWait(env.reconcile(m), "available")
	env.expectCondition(m, ConditionAvailable, serving.ReasonUnavailable, "pod new has unready containers [rest-container: {waiting: {reason: ImagePullBackOff")
}
