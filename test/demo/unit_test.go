package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// newMLflow returns an MLflow of generation 2, without a status if status is nil.
func newMLflow(status map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "mlflow.opendatahub.io/v1", "kind": "MLflow",
		"metadata": map[string]any{
			"name": "mlflow", "generation": int64(2), "creationTimestamp": noon.Add(-time.Hour).Format(time.RFC3339),
		},
	}}
	if status != nil {
		object.Object["status"] = status
	}
	return object
}

func condition(conditionType, status, reason, message string, generation int64) map[string]any {
	return map[string]any{
		"type": conditionType, "status": status, "reason": reason, "message": message, "observedGeneration": generation,
		"lastTransitionTime": noon.Add(-90 * time.Second).Format(time.RFC3339),
	}
}

func withConditions(conditions ...any) *unstructured.Unstructured {
	return newMLflow(map[string]any{"conditions": conditions})
}

func TestReadinessOf(t *testing.T) {
	deleted := withConditions(condition("Available", "True", "Fine", "", 2))
	deleted.SetDeletionTimestamp(&metav1.Time{Time: noon})
	staleStatus := newMLflow(map[string]any{
		"observedGeneration": int64(1), "conditions": []any{condition("Available", "True", "Fine", "", 0)},
	})
	for name, c := range map[string]struct {
		live      *unstructured.Unstructured
		condition string
		ready     bool
		text      string
	}{
		"true":                    {withConditions(condition("Available", "True", "Fine", "all well", 2)), "Available", true, "Available is True, Fine: all well"},
		"without message":         {withConditions(condition("Available", "True", "Fine", "", 2)), "Available", true, "Available is True, Fine"},
		"false":                   {withConditions(condition("Available", "False", "NoPods", "none", 2)), "Available", false, "Available is False, NoPods: none"},
		"unknown":                 {withConditions(condition("Available", "Unknown", "Starting", "", 2)), "Available", false, "Available is Unknown, Starting"},
		"older generation":        {withConditions(condition("Available", "True", "Fine", "", 1)), "Available", false, "Available is of an older generation"},
		"stale status":            {staleStatus, "Available", false, "Available is of an older generation"},
		"generation not reported": {withConditions(condition("Available", "True", "Fine", "", 0)), "Available", true, "Available is True, Fine"},
		"another condition":       {withConditions(condition("Available", "True", "Fine", "", 2)), "Ready", false, "condition Ready does not exist yet"},
		"no status":               {newMLflow(nil), "Available", false, "condition Available does not exist yet"},
		"exists":                  {newMLflow(nil), "", true, "exists"},
		"ready but terminating":   {deleted, "Available", false, "it is being deleted"},
		"exists but terminating":  {deleted, "", false, "it is being deleted"},
	} {
		got, err := readinessOf(c.live, kind{ready: c.condition})
		if want := (readiness{c.ready, c.text}); err != nil || got != want {
			t.Errorf("%s: got %v, error %v, want %v", name, got, err, want)
		}
	}
	if _, err := readinessOf(newMLflow(map[string]any{"conditions": "text"}), kind{ready: "Available"}); err == nil || !strings.Contains(err.Error(), "status of MLflow mlflow") {
		t.Errorf("got error %v for an invalid status, want the object in it", err)
	}
}

func TestReadinessByFlag(t *testing.T) {
	for name, c := range map[string]struct {
		live *unstructured.Unstructured
		want readiness
	}{
		"true":      {newMLflow(map[string]any{"available": true}), readiness{true, "available is true"}},
		"false":     {newMLflow(map[string]any{"available": false}), readiness{false, "available is false"}},
		"no status": {newMLflow(nil), readiness{false, "available is false"}},
	} {
		if got, err := readinessOf(c.live, kind{flag: "available"}); err != nil || got != c.want {
			t.Errorf("%s: got %v, error %v, want %v", name, got, err, c.want)
		}
	}
	if _, err := readinessOf(newMLflow(map[string]any{"available": "yes"}), kind{flag: "available"}); err == nil {
		t.Error("want an error for a broken status")
	}
}

func TestTable(t *testing.T) {
	rows, err := rowsOf(withConditions(
		condition("Available", "True", "DeploymentReady", "", 2), condition("Progressing", "False", "Done", "", 2)), noon)
	if err != nil {
		t.Fatal(err)
	}
	withoutStatus, err := rowsOf(newMLflow(nil), noon)
	if err != nil {
		t.Fatal(err)
	}
	want := "" +
		"KIND     NAME     CONDITION     STATUS   REASON            AGE\n" +
		"MLflow   mlflow   Available     True     DeploymentReady   90s\n" +
		"MLflow   mlflow   Progressing   False    Done              90s\n" +
		"MLflow   mlflow   -             -        -                 60m\n"
	if difference := cmp.Diff(want, table(append(rows, withoutStatus...))); difference != "" {
		t.Error(difference)
	}
	if _, err := rowsOf(newMLflow(map[string]any{"conditions": "text"}), noon); err == nil {
		t.Error("want an error for a broken status")
	}
}

func TestFailureContainsAllDetails(t *testing.T) {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow-1"},
		Spec:       corev1.PodSpec{Containers: make([]corev1.Container, 2)},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "sidecar", Ready: true},
			{Name: "mlflow", Image: "a:b", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}},
		}},
	}
	f := &failure{
		cause:    "after 2m0s",
		problems: []problem{{"MLflow mlflow", "Available is False, NoPods"}},
		rows:     []row{{kind: "MLflow", name: "mlflow", condition: "Available", status: "False", reason: "NoPods", age: "5s"}},
		pods:     []corev1.Pod{pod},
		manager:  "is running, pid 7", logPath: "/tmp/manager.log", logTail: "first\nlast\n",
		errs: []error{errors.New("listing something failed")},
	}
	want := `not ready: after 2m0s
  MLflow mlflow: Available is False, NoPods

Conditions:
  KIND     NAME     CONDITION   STATUS   REASON   AGE
  MLflow   mlflow   Available   False    NoPods   5s

Pods:
  NAMESPACE     NAME       PHASE     READY   PROBLEM
  opendatahub   mlflow-1   Pending   1/2     image "a:b" of container mlflow cannot be pulled; check its name, the registry and the pull secrets
  (listing something failed)

The manager is running, pid 7. Last lines of /tmp/manager.log:
  first
  last`
	if difference := cmp.Diff(want, f.Error()); difference != "" {
		t.Error(difference)
	}
	if text := (&failure{}).Error(); !strings.Contains(text, "Pods:\n  no pods\n") {
		t.Errorf("got %q, want 'no pods' in it", text)
	}
}

func TestSettings(t *testing.T) {
	field := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "proxy", Args: []string{"--proxy"}, Env: []corev1.EnvVar{{Name: "PROXY", Value: "1"}}},
		{
			Name: "manager",
			Args: []string{"--leader-elect", "--health-probe-bind-address=:8081", "--metrics-bind-address=:8443", "--webhook-port=9443"},
			Env:  []corev1.EnvVar{{Name: "POD_NAMESPACE", ValueFrom: field}, {Name: "MLFLOW_IMAGE", Value: "registry/mlflow"}},
		},
	}
	args, env := settings(deployment)
	if !slices.Equal(args, []string{"--leader-elect"}) || !slices.Equal(env, []string{"MLFLOW_IMAGE=registry/mlflow"}) {
		t.Errorf("got arguments %q, variables %q, want only --leader-elect and MLFLOW_IMAGE", args, env)
	}
}

func TestDescribeCounts(t *testing.T) {
	if text := describeCounts(map[string]int{"Service": 1, "NetworkPolicy": 2}); text != "3 objects: 2 NetworkPolicy, 1 Service" {
		t.Errorf("got %q, want the total and the kinds", text)
	}
}

func TestListable(t *testing.T) {
	got := listable([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "services", Kind: "Service", Verbs: metav1.Verbs{"get", "list"}}, {Name: "bindings", Kind: "Binding", Verbs: metav1.Verbs{"create"}},
		}},
		{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "others", Kind: "Other", Verbs: metav1.Verbs{"list"}}}},
	})
	want := map[schema.GroupVersionResource]string{{Version: "v1", Resource: "services"}: "Service"}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Error(difference)
	}
}

func TestCount(t *testing.T) {
	listed := func(uid types.UID, operation metav1.ManagedFieldsOperationType) metav1.PartialObjectMetadata {
		fields := []metav1.ManagedFieldsEntry{{Operation: operation}}
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid, ManagedFields: fields}}
	}
	apply, update := metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	counts := count(map[string][]metav1.PartialObjectMetadata{
		"Service": {listed("1", apply), listed("2", apply), listed("1", apply)}, "EndpointSlice": {listed("3", update)},
	})
	if difference := cmp.Diff(map[string]int{"Service": 2}, counts); difference != "" {
		t.Error(difference)
	}
}

func TestCheckKinds(t *testing.T) {
	for _, dir := range []string{samplesDir, "test/demo/testdata/broken"} {
		samples, err := readSamples(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkKinds(samples); err != nil {
			t.Errorf("%s: unexpected error: %v", dir, err)
		}
	}
	unknown := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Unknown"}}
	unknown.SetName("one")
	if err := checkKinds([]*unstructured.Unstructured{unknown}); err == nil || !strings.Contains(err.Error(), "Unknown.example.com to the table in test/demo/kinds.go") {
		t.Errorf("got error %v for an unknown kind, want the kind in it", err)
	}
	if _, err := readSamples("test/demo/testdata/none"); err == nil || !strings.Contains(err.Error(), "test/demo/testdata/none") {
		t.Errorf("got error %v for a missing folder, want the folder in it", err)
	}
}

func TestSelectSamplesForRealNode(t *testing.T) {
	samples, err := (&demo{samples: samplesDir, real: true}).selectSamples()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkKinds(samples); err != nil {
		t.Error(err)
	}
	var kinds []string
	for _, sample := range samples {
		kinds = append(kinds, sample.GetKind())
	}
	slices.Sort(kinds)
	if want := []string{"AppWrapper", "MLflow", "ModelRegistry", "RayCluster"}; !slices.Equal(kinds, want) {
		t.Errorf("got %q, want %q", kinds, want)
	}
}

func TestDescribeManagerInPod(t *testing.T) {
	env := &environment{instance: &cluster.Instance{}}
	state, log, end := env.describeManager(t.Context())
	if state != "runs in a pod" || !strings.Contains(log, "deployment/odh-platform-operator-controller-manager") || !strings.Contains(end, "kubectl") {
		t.Errorf("got state %q, log %q, last lines %q, want those of a pod", state, log, end)
	}
	if !env.managerRunning() || !strings.HasPrefix(env.managerLocation(), "The manager is the pod of Deployment ") {
		t.Error("want a manager without a process to be running, in the pod of its Deployment")
	}
}

func TestInvalidArgumentsReturnErrUsage(t *testing.T) {
	d := &demo{clock: clocktesting.NewFakePassiveClock(noon), out: io.Discard, progress: io.Discard}
	for _, args := range [][]string{nil, {"unknown"}, {"up", "down"}, {"down", "--real"}} {
		if err := d.run(t.Context(), args); !errors.Is(err, errUsage) {
			t.Errorf("%q: got error %v, want errUsage", args, err)
		}
	}
}

func TestAccess(t *testing.T) {
	want := "Connect to the cluster with:\n  export PATH=\"/tmp/tools:$PATH\"\n  export KUBECONFIG=\"/tmp/config\"\n"
	if difference := cmp.Diff(want, access("/tmp/config", "/tmp/tools")); difference != "" {
		t.Error(difference)
	}
	if text := access("/tmp/config", ""); strings.Contains(text, "PATH=\"\"") || !strings.Contains(text, "KUBECONFIG") {
		t.Errorf("got %q, want only KUBECONFIG", text)
	}
}
