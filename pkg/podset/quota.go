package podset

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// BeyondQuota returns what in an object makes its pods outgrow or outlive the quota that is asked for them. Kueue refuses the
// same when it queues these kinds by themselves. The value of a Fault is the field.
func BeyondQuota(u *unstructured.Unstructured) []Fault {
	var out []Fault
	place := map[string]string{"RayCluster": "spec", "RayJob": "spec.rayClusterSpec", "RayService": "spec.rayClusterConfig"}[u.GetKind()]
	if u.GroupVersionKind().Group != "ray.io" || place == "" {
		return nil
	}
	spec := child(u.Object, "spec")
	if u.GetKind() == "RayJob" && spec["shutdownAfterJobFinishes"] != true {
		out = append(out, Fault{Value: "spec.shutdownAfterJobFinishes",
			Message: "must be true in a queue: otherwise the pods of the cluster run on when the job has ended, and keep their quota"})
	}
	if cluster := child(u.Object, strings.Split(place, ".")...); cluster["enableInTreeAutoscaling"] == true {
		out = append(out, Fault{Value: place + ".enableInTreeAutoscaling",
			Message: "must not be true in a queue: Ray's autoscaler makes pods that nobody has asked quota for"})
	}
	return out
}
