package appwrapper

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
)

// podIn returns a pod in a phase.
func podIn(name string, phase corev1.PodPhase, changes ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon)},
		Spec:   corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Phase: phase}}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func withTerminatedContainer(container string, code int32, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: container,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}})
	}
}

func withLimit(resourceName, amount string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(resourceName): resource.MustParse(amount)}
	}
}

type unhealthyNodes map[string]string

func (n unhealthyNodes) NoExecute(node string) sets.Set[string] {
	if n[node] == "" {
		return nil
	}
	return sets.New(n[node])
}

func observerOf(pods ...corev1.Pod) podObserver {
	terms := rules.TermsOf(nil, defaultSettings().FaultTolerance)
	return podObserver{pods: pods, createdAt: metav1.NewTime(noon), terms: terms, componentDone: func(*corev1.Pod) bool { return false }}
}

func TestPodsAreCounted(t *testing.T) {
	terminating := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
	older := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) }
	facts := observerOf(
		podIn("a", corev1.PodPending), podIn("b", corev1.PodPending, terminating),
		podIn("c", corev1.PodRunning), podIn("d", corev1.PodRunning, terminating),
		podIn("e", corev1.PodSucceeded), podIn("f", corev1.PodFailed), podIn("g", corev1.PodUnknown),
		podIn("h", corev1.PodRunning, older), podIn("i", corev1.PodFailed, older),
	).observe()
	if got := [...]int{facts.Pending, facts.Running, facts.Succeeded, facts.Failed, facts.All, facts.Active}; got != [...]int{2, 1, 1, 1, 9, 6} {
		t.Errorf("got pending, running, succeeded, failed, all, active %v, want %v", got, [...]int{2, 1, 1, 1, 9, 6})
	}
}

func TestPodsOfDoneComponentsAreIgnored(t *testing.T) {
	ownedByJob := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j", UID: "job-uid", Controller: new(true)}}
	}
	// KubeRay labels pods only with the RayCluster, even if a RayJob created the RayCluster.
	inRayCluster := func(p *corev1.Pod) {
		p.Labels = map[string]string{"ray.io/cluster": "j-raycluster-x7k2p"}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "RayCluster", Name: "j-raycluster-x7k2p", UID: "rc", Controller: new(true)}}
	}
	inJobSet := func(p *corev1.Pod) { p.Labels = map[string]string{labelJobSet: "s"} }
	p := observerOf(podIn("a", corev1.PodFailed, ownedByJob), podIn("b", corev1.PodRunning, inJobSet), podIn("c", corev1.PodRunning))
	p.componentDone = func(pod *corev1.Pod) bool {
		return podSelector{kind: "Job", name: "j"}.matches(pod) || podSelector{kind: "JobSet", name: "s"}.matches(pod)
	}
	if f := p.observe(); f.Failed != 0 || f.Running != 1 || f.All != 3 || f.Active != 2 {
		t.Errorf("got %+v, want 2 active of 3 pods, 1 of them running and none failed", f)
	}
	for name, tc := range map[string]struct {
		pod      corev1.Pod
		selector podSelector
		want     bool
	}{
		"UID of the owner":              {podIn("p", corev1.PodRunning, ownedByJob), podSelector{kind: "Any", name: "any", uid: "job-uid"}, true},
		"another UID":                   {podIn("p", corev1.PodRunning, ownedByJob), podSelector{kind: "Any", name: "any", uid: "other"}, false},
		"name of the owner":             {podIn("p", corev1.PodRunning, ownedByJob), podSelector{kind: "Job", name: "j"}, true},
		"another kind of the owner":     {podIn("p", corev1.PodRunning, ownedByJob), podSelector{kind: "Other", name: "j"}, false},
		"submitter of a RayJob":         {podIn("p", corev1.PodRunning, ownedByJob), podSelector{kind: "RayJob", name: "j"}, true},
		"pod of the RayCluster":         {podIn("p", corev1.PodRunning, inRayCluster), podSelector{kind: "RayJob", name: "j", rayCluster: "j-raycluster-x7k2p"}, true},
		"pod of another RayCluster":     {podIn("p", corev1.PodRunning, inRayCluster), podSelector{kind: "RayJob", name: "j", rayCluster: "j-raycluster-other"}, false},
		"RayJob without a cluster name": {podIn("p", corev1.PodRunning), podSelector{kind: "RayJob", name: "j"}, false},
		"pod of a JobSet":               {podIn("p", corev1.PodRunning, inJobSet), podSelector{kind: "JobSet", name: "s"}, true},
	} {
		trimmed, err := trimObject(tc.pod.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if got := tc.selector.matches(trimmed.(*corev1.Pod)); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

func TestPodsOnUnhealthyNodes(t *testing.T) {
	p := observerOf(
		podIn("a", corev1.PodRunning, withLimit("nvidia.com/gpu", "1")), podIn("zero", corev1.PodRunning, withLimit("nvidia.com/gpu", "0")),
		podIn("cpu", corev1.PodRunning, withLimit("cpu", "1")), podIn("pending", corev1.PodPending, withLimit("nvidia.com/gpu", "1")),
		podIn("b", corev1.PodRunning, withLimit("nvidia.com/gpu", "1"), func(p *corev1.Pod) { p.Spec.NodeName = "n0" }),
		podIn("healthy", corev1.PodRunning, withLimit("nvidia.com/gpu", "1"), func(p *corev1.Pod) { p.Spec.NodeName = "n2" }),
	)
	p.nodes = unhealthyNodes{"n1": "nvidia.com/gpu", "n0": "nvidia.com/gpu"}
	if f := p.observe(); !slices.Equal(f.NoExecute, []string{"n0", "n1"}) {
		t.Errorf("got nodes %q, want n0 and n1", f.NoExecute)
	}
}

func TestTerminalExitCodes(t *testing.T) {
	withFailedInitContainer := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}}}
	}
	for name, tc := range map[string]struct {
		pod                 corev1.Pod
		terminal, retryable []int32
		want                bool
	}{
		"no exit codes configured":       {pod: podIn("p", corev1.PodFailed, withTerminatedContainer("c", 3, ""))},
		"terminal":                       {podIn("p", corev1.PodFailed, withTerminatedContainer("c", 3, "")), []int32{3}, nil, true},
		"terminal, in an init container": {podIn("p", corev1.PodFailed, withFailedInitContainer), []int32{3}, nil, true},
		"not terminal":                   {podIn("p", corev1.PodFailed, withTerminatedContainer("c", 4, "")), []int32{3}, nil, false},
		"retryable":                      {podIn("p", corev1.PodFailed, withTerminatedContainer("c", 3, "")), nil, []int32{3}, false},
		"not retryable":                  {podIn("p", corev1.PodFailed, withTerminatedContainer("c", 4, "")), nil, []int32{3}, true},
		"exit code 0":                    {podIn("p", corev1.PodFailed, withTerminatedContainer("c", 0, "")), []int32{0}, []int32{3}, false},
		"terminal, in a running pod":     {podIn("p", corev1.PodRunning, withTerminatedContainer("c", 3, "")), []int32{3}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := observerOf(tc.pod)
			p.terms.TerminalExitCodes, p.terms.RetryableExitCodes = sets.New(tc.terminal...), sets.New(tc.retryable...)
			if got := p.observe().Terminal; got != tc.want {
				t.Errorf("got terminal %t, want %t", got, tc.want)
			}
		})
	}
}

func TestReportDescribesFailedPods(t *testing.T) {
	crashing := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "loop", LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", Message: "too\n  much"}}}}
	}
	evicted := func(p *corev1.Pod) {
		p.Status.Reason, p.Status.Message, p.Spec.NodeName = "Evicted", "low on memory", ""
	}
	got := failureReport([]corev1.Pod{
		podIn("z", corev1.PodFailed, withTerminatedContainer("main", 3, "Error"), withTerminatedContainer("side", 0, "Completed")), podIn("ok", corev1.PodSucceeded, withTerminatedContainer("main", 0, "Completed")),
		podIn("a", corev1.PodRunning, crashing), podIn("e", corev1.PodFailed, evicted),
	})
	want := "pod a on node n1: container loop ended with exit code 137 (OOMKilled too much); pod e: failed (Evicted low on memory); pod z on node n1: container main ended with exit code 3 (Error)"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var many []corev1.Pod
	for i := range 25 {
		many = append(many, podIn(fmt.Sprintf("p%02d", i), corev1.PodFailed, withTerminatedContainer("c", 1, "")))
	}
	if got := failureReport(many); strings.Count(got, "pod p") != maxReportedPods || !strings.HasSuffix(got, "and 15 more pods") {
		t.Errorf("report of 25 pods: got %s, want %d pods and a count", got, maxReportedPods)
	}
}

// withStatus returns an object with a status.
func withStatus(apiVersion, kind string, status map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "status": status}}
	return u
}

func conditionsOf(pairs ...string) map[string]any {
	var list []any
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, map[string]any{"type": pairs[i], "status": pairs[i+1], "reason": "Because", "message": "of this"})
	}
	return map[string]any{"conditions": list}
}

// [D4] [D5] readState returns the state that a component reports.
func TestStatusReaders(t *testing.T) {
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		want   reportedState
	}{
		"job, running":                   {withStatus("batch/v1", "Job", conditionsOf("Suspended", "False")), reportedState{}},
		"job, complete":                  {withStatus("batch/v1", "Job", conditionsOf("SuccessCriteriaMet", "True", "Complete", "True")), reportedState{outcome: rules.Succeeded}},
		"job, terminating its pods":      {withStatus("batch/v1", "Job", conditionsOf("SuccessCriteriaMet", "True", "FailureTarget", "True")), reportedState{}},
		"job, failed":                    {withStatus("batch/v1", "Job", conditionsOf("Failed", "True")), reportedState{outcome: rules.Failed, message: "Because: of this"}},
		"job, Failed false":              {withStatus("batch/v1", "Job", conditionsOf("Failed", "False")), reportedState{}},
		"jobset, completed":              {withStatus("jobset.x-k8s.io/v1alpha2", "JobSet", conditionsOf("Completed", "True")), reportedState{outcome: rules.Succeeded}},
		"jobset, failed":                 {withStatus("jobset.x-k8s.io/v1alpha2", "JobSet", conditionsOf("Failed", "True")), reportedState{outcome: rules.Failed, message: "Because: of this"}},
		"pytorch, succeeded":             {withStatus("kubeflow.org/v1", "PyTorchJob", conditionsOf("Running", "False", "Succeeded", "True")), reportedState{outcome: rules.Succeeded}},
		"pytorch, failed":                {withStatus("kubeflow.org/v1", "PyTorchJob", conditionsOf("Failed", "True")), reportedState{outcome: rules.Failed, message: "Because: of this"}},
		"rayjob, running":                {withStatus("ray.io/v1", "RayJob", map[string]any{"jobDeploymentStatus": "Running", "jobStatus": "FAILED"}), reportedState{}},
		"rayjob, running with a cluster": {withStatus("ray.io/v1", "RayJob", map[string]any{"jobDeploymentStatus": "Running", "rayClusterName": "j-x"}), reportedState{rayCluster: "j-x"}},
		"rayjob, retrying":               {withStatus("ray.io/v1", "RayJob", map[string]any{"jobDeploymentStatus": "Retrying"}), reportedState{}},
		"rayjob, complete":               {withStatus("ray.io/v1", "RayJob", map[string]any{"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}), reportedState{outcome: rules.Succeeded}},
		"rayjob, stopped":                {withStatus("ray.io/v1", "RayJob", map[string]any{"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"}), reportedState{outcome: rules.Failed, message: "STOPPED"}},
		"rayjob, failed":                 {withStatus("ray.io/v1", "RayJob", map[string]any{"jobDeploymentStatus": "Failed", "reason": "AppFailed", "message": "exit 1"}), reportedState{outcome: rules.Failed, message: "AppFailed: exit 1"}},
		"raycluster, failed":             {withStatus("ray.io/v1", "RayCluster", map[string]any{"state": "failed", "reason": "no pods"}), reportedState{outcome: rules.Failing, message: "no pods"}},
		"raycluster, ready":              {withStatus("ray.io/v1", "RayCluster", map[string]any{"state": "ready"}), reportedState{}},
		"unknown kind":                   {withStatus("example.com/v1", "Thing", conditionsOf("Failed", "True")), reportedState{}},
		"invalid status":                 {withStatus("batch/v1", "Job", map[string]any{"conditions": "none"}), reportedState{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readState(tc.object.GroupVersionKind(), trimComponent(tc.object)); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
	if got := readState(jobKind, nil); got != (reportedState{}) {
		t.Errorf("nil object: got %+v, want %+v", got, (reportedState{}))
	}
}

// trimObject keeps the fields that the controller reads, and removes others.
func TestTrimObjectKeepsReadFields(t *testing.T) {
	full := podIn("p", corev1.PodFailed, withTerminatedContainer("main", 3, "Error"), withLimit("nvidia.com/gpu", "1"), func(p *corev1.Pod) {
		p.Annotations, p.ManagedFields = map[string]string{"a": "b"}, []metav1.ManagedFieldsEntry{{Manager: "m"}}
		p.Labels = map[string]string{labelJobSet: "s", "other": "x"}
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SECRET", Value: "s"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no room"}, {Type: corev1.PodReady}}
	})
	trimmed, err := trimObject(full.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	p, ok := trimmed.(*corev1.Pod)
	if !ok || len(p.Annotations)+len(p.ManagedFields)+len(p.Spec.Containers[0].Env) != 0 || p.Labels["other"] != "" {
		t.Errorf("got %+v, want annotations, managed fields, environment and other labels removed", trimmed)
	}
	fullObserver, trimmedObserver := observerOf(full), observerOf(*p)
	if fullFacts, trimmedFacts := fullObserver.observe(), trimmedObserver.observe(); fullFacts.Report != trimmedFacts.Report || fullFacts.Diagnosis != trimmedFacts.Diagnosis || fullFacts.Failed != trimmedFacts.Failed || fullFacts.Diagnosis == "" {
		t.Errorf("facts differ:\n%+v\n%+v", fullFacts, trimmedFacts)
	}
	job := withStatus("batch/v1", "Job", nil)
	job.SetDeletionTimestamp(&metav1.Time{Time: noon})
	job.SetDeletionGracePeriodSeconds(new(int64(0)))
	if needsDelete(trimComponent(job), true) {
		t.Error("a terminating Job with grace period 0 needs another forced delete, want none")
	}
	metadata := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}}
	if out, err := trimObject(metadata); err != nil || len(out.(*metav1.PartialObjectMetadata).Annotations) != 0 {
		t.Errorf("metadata: got %+v, error %v, want no annotations", out, err)
	}
}

// A component that was not adopted counts as restored only if it is older than its AppWrapper: the pods of a restored component count
// even if they are older than the AppWrapper.
func TestOnlyOlderComponentsAreRestored(t *testing.T) {
	for age, want := range map[time.Duration]bool{-time.Second: false, 0: false, time.Second: true} {
		aw := newAppWrapper(nil)
		job := withStatus("batch/v1", "Job", nil)
		job.SetCreationTimestamp(metav1.NewTime(noon.Add(-age)))
		if got := newFixture(t, aw).isRestored(aw, 0, trimComponent(job)); got != want {
			t.Errorf("%s older than its AppWrapper: got restored %t, want %t", age, got, want)
		}
	}
}

func TestPodChanged(t *testing.T) {
	before := podIn("p", corev1.PodPending)
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"phase":    {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		"node":     {func(p *corev1.Pod) { p.Spec.NodeName = "n9" }, true},
		"deletion": {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }, true},
		"reason why it is unschedulable": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no node"}}
		}, true},
		"resourceVersion": {func(p *corev1.Pod) { p.ResourceVersion = "7" }, false},
	} {
		after := before.DeepCopy()
		tc.change(after)
		if got := (podChanged{}).Update(event.UpdateEvent{ObjectOld: &before, ObjectNew: after}); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
