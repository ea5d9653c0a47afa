package appwrapper

import (
	"slices"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// reportedState is the state that a component reports in its status.
type reportedState struct {
	outcome rules.Outcome
	message string
	// rayCluster is the name of the RayCluster of a RayJob.
	rayCluster string
}

// rayJobKind is the only kind whose pods are selected by a field of its status.
var rayJobKind = rayv1.GroupVersion.WithKind("RayJob")

// statusReader reads the statusFields of one kind.
type statusReader struct {
	read func(status map[string]any) reportedState
	// reportsCompletion reports whether the kind reports success in its status.
	reportsCompletion bool
}

// statusReaders are the kinds whose status is read. The state of all others depends on their pods only.
var statusReaders = map[schema.GroupVersionKind]statusReader{
	{Group: "batch", Version: "v1", Kind: "Job"}:                    {conditionsReader("Complete", "Failed"), true},
	{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}: {conditionsReader("Completed", "Failed"), true},
	{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}:      {conditionsReader("Succeeded", "Failed"), true},
	rayJobKind: {readRayJob, true},
	rayv1.GroupVersion.WithKind("RayCluster"): {readRayCluster, false},
}

// readState returns the state that an object of any kind reports.
func readState(kind schema.GroupVersionKind, object client.Object) reportedState {
	reader, known := statusReaders[kind]
	u, isFull := object.(*unstructured.Unstructured) // otherwise metadata
	if !known || !isFull {
		return reportedState{}
	}
	return reader.read(nested.Pick(nested.Map(u.Object, "status"), statusFields...))
}

// conditionsReader returns a reader for kinds that complete with one of two conditions.
func conditionsReader(success, failure string) func(map[string]any) reportedState {
	return func(status map[string]any) reportedState {
		conditions := nested.Decode[struct {
			Conditions []metav1.Condition `json:"conditions"`
		}](status).Conditions
		if c := meta.FindStatusCondition(conditions, failure); c != nil && c.Status == metav1.ConditionTrue {
			return reportedState{outcome: rules.Failed, message: joinNonEmpty(c.Reason, c.Message)}
		}
		if meta.IsStatusConditionTrue(conditions, success) {
			return reportedState{outcome: rules.Succeeded}
		}
		return reportedState{}
	}
}

// readRayJob reads the terminal values of jobDeploymentStatus. jobStatus is not terminal while retries remain, but distinguishes success
// from failure after Complete.
func readRayJob(fields map[string]any) reportedState {
	status := nested.Decode[rayv1.RayJobStatus](fields)
	state := reportedState{rayCluster: status.RayClusterName}
	switch status.JobDeploymentStatus {
	case rayv1.JobDeploymentStatusFailed, rayv1.JobDeploymentStatusValidationFailed:
		state.outcome, state.message = rules.Failed, joinNonEmpty(string(status.Reason), status.Message)
	case rayv1.JobDeploymentStatusComplete:
		if status.JobStatus == rayv1.JobStatusSucceeded {
			state.outcome = rules.Succeeded
		} else {
			state.outcome, state.message = rules.Failed, joinNonEmpty(string(status.JobStatus), string(status.Reason), status.Message)
		}
	}
	return state
}

// readRayCluster reads the state failed, which is not terminal: it counts as a failure if it persists.
func readRayCluster(fields map[string]any) reportedState {
	if status := nested.Decode[rayv1.RayClusterStatus](fields); status.State == rayv1.Failed { //nolint:staticcheck // KubeRay still sets it
		return reportedState{outcome: rules.Failing, message: status.Reason}
	}
	return reportedState{}
}

func joinNonEmpty(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ": ")
}
