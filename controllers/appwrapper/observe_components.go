package appwrapper

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// verdict is what a component says about itself, and why it failed.
type verdict struct {
	outcome outcome
	message string
	// rayCluster is the name of the RayCluster that a RayJob runs on.
	rayCluster string
}

// rayJobKind is the kind whose pods can only be found with the help of its status.
var rayJobKind = schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"}

// judge reads the status of one kind. It is asked with what slim leaves of an object.
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
	{Group: "ray.io", Version: "v1", Kind: "RayCluster"}: {rayCluster, false},
}

// judged returns what an object of any kind says about itself.
func judged(kind schema.GroupVersionKind, object *unstructured.Unstructured) verdict {
	j, known := judges[kind]
	if !known || object == nil {
		return verdict{}
	}
	status, ok := object.Object["status"].(map[string]any)
	if !ok {
		return verdict{}
	}
	return j.read(status)
}

// byConditions reads kinds that end with one of two conditions.
func byConditions(success, failure string) func(map[string]any) verdict {
	return func(status map[string]any) verdict {
		list, _, err := unstructured.NestedSlice(status, "conditions")
		if err != nil {
			return verdict{}
		}
		out := verdict{}
		for _, item := range list {
			c, ok := item.(map[string]any)
			if !ok || c["status"] != "True" {
				continue
			}
			switch c["type"] {
			case failure:
				return verdict{outcome: failed, message: text(c, "reason", "message")}
			case success:
				out.outcome = succeeded
			}
		}
		return out
	}
}

// rayJob reads the state of the deployment of the job, which is terminal; the state of the job in it is not while retries
// are left. Complete says that it ended, and only the job how.
func rayJob(status map[string]any) verdict {
	out := verdict{rayCluster: text(status, "rayClusterName")}
	switch status["jobDeploymentStatus"] {
	case "Failed", "ValidationFailed":
		out.outcome, out.message = failed, text(status, "reason", "message")
	case "Complete":
		if status["jobStatus"] == "SUCCEEDED" {
			out.outcome = succeeded
		} else {
			out.outcome, out.message = failed, text(status, "jobStatus", "reason", "message")
		}
	}
	return out
}

// rayCluster reads a state that comes and goes: it counts as a failure when it lasts.
func rayCluster(status map[string]any) verdict {
	if status["state"] == "failed" {
		return verdict{outcome: failing, message: text(status, "reason")}
	}
	return verdict{}
}

// text joins fields that are strings.
func text(fields map[string]any, keys ...string) string {
	out := ""
	for _, key := range keys {
		value, ok := fields[key].(string)
		switch {
		case !ok || value == "":
		case out == "":
			out = value
		default:
			out += ": " + value
		}
	}
	return out
}
