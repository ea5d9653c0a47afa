package appwrapper

import (
	"slices"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// verdict is what a component says about itself, and why it failed.
type verdict struct {
	outcome rules.Outcome
	message string
	// rayCluster is the name of the RayCluster that a RayJob runs on.
	rayCluster string
}

// rayJobKind is the kind whose pods can only be found with the help of its status.
var rayJobKind = rayv1.GroupVersion.WithKind("RayJob")

// judge reads the status of one kind. It gets what slim leaves of an object.
type judge struct {
	read func(status map[string]any) verdict
	// completes: the kind reports success by itself.
	completes bool
}

// judges are the kinds whose status is read. All others are judged by their pods alone.
var judges = map[schema.GroupVersionKind]judge{
	{Group: "batch", Version: "v1", Kind: "Job"}:                    {byConditions("Complete", "Failed"), true},
	{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}: {byConditions("Completed", "Failed"), true},
	{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}:      {byConditions("Succeeded", "Failed"), true},
	rayJobKind: {rayJob, true},
	rayv1.GroupVersion.WithKind("RayCluster"): {rayCluster, false},
}

// judged returns what an object of any kind says about itself.
func judged(kind schema.GroupVersionKind, object *unstructured.Unstructured) verdict {
	j, known := judges[kind]
	if !known || object == nil {
		return verdict{}
	}
	return j.read(nested.Pick(nested.Map(object.Object, "status"), judgedFields...))
}

// byConditions reads kinds that end with one of two conditions.
func byConditions(success, failure string) func(map[string]any) verdict {
	return func(status map[string]any) verdict {
		conditions := nested.Decode[struct {
			Conditions []metav1.Condition `json:"conditions"`
		}](status).Conditions
		if c := meta.FindStatusCondition(conditions, failure); c != nil && c.Status == metav1.ConditionTrue {
			return verdict{outcome: rules.Failed, message: joined(c.Reason, c.Message)}
		}
		if meta.IsStatusConditionTrue(conditions, success) {
			return verdict{outcome: rules.Succeeded}
		}
		return verdict{}
	}
}

// rayJob reads the state of the deployment of the job, which is terminal; the state of the job in it is not while retries
// are left. Complete says that it ended, and only the job how.
func rayJob(fields map[string]any) verdict {
	status := nested.Decode[rayv1.RayJobStatus](fields)
	out := verdict{rayCluster: status.RayClusterName}
	switch status.JobDeploymentStatus {
	case rayv1.JobDeploymentStatusFailed, rayv1.JobDeploymentStatusValidationFailed:
		out.outcome, out.message = rules.Failed, joined(string(status.Reason), status.Message)
	case rayv1.JobDeploymentStatusComplete:
		if status.JobStatus == rayv1.JobStatusSucceeded {
			out.outcome = rules.Succeeded
		} else {
			out.outcome, out.message = rules.Failed, joined(string(status.JobStatus), string(status.Reason), status.Message)
		}
	}
	return out
}

// rayCluster reads a state that comes and goes: it counts as a failure when it lasts.
func rayCluster(fields map[string]any) verdict {
	if status := nested.Decode[rayv1.RayClusterStatus](fields); status.State == rayv1.Failed { //nolint:staticcheck // KubeRay still sets it
		return verdict{outcome: rules.Failing, message: status.Reason}
	}
	return verdict{}
}

// joined are the texts that are not empty.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ": ")
}
