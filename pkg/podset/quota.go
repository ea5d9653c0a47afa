package podset

import (
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// BeyondQuota returns what in an object makes its pods outgrow or outlive the quota that is asked for them. Kueue refuses the
// same when it queues these kinds by themselves. The value of a Fault is the field.
func BeyondQuota(u *unstructured.Unstructured) []Fault {
	var out []Fault
	place := map[string]string{"RayCluster": "spec", "RayJob": "spec.rayClusterSpec", "RayService": "spec.rayClusterConfig"}[u.GetKind()]
	if u.GroupVersionKind().Group != rayv1.GroupVersion.Group || place == "" {
		return nil
	}
	spec := nested.Map(u.Object, "spec")
	if u.GetKind() == "RayJob" && spec["shutdownAfterJobFinishes"] != true {
		out = append(out, Fault{Value: "spec.shutdownAfterJobFinishes",
			Message: "must be true in a queue: otherwise the pods of the cluster run on when the job has ended, and keep their quota"})
	}
	if cluster := nested.Map(u.Object, strings.Split(place, ".")...); cluster["enableInTreeAutoscaling"] == true {
		out = append(out, Fault{Value: place + ".enableInTreeAutoscaling",
			Message: "must not be true in a queue: Ray's autoscaler makes pods that nobody has asked quota for"})
	}
	return out
}
