package podset

import (
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// BeyondQuota returns what in an object makes its pods outgrow or outlive the quota that is requested for them. Kueue refuses the
// same when it queues these kinds by themselves. The path is that of the object.
func BeyondQuota(u *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	place := map[string]string{"RayCluster": "spec", "RayJob": "spec.rayClusterSpec", "RayService": "spec.rayClusterConfig"}[u.GetKind()]
	if u.GroupVersionKind().Group != rayv1.GroupVersion.Group || place == "" {
		return nil
	}
	if u.GetKind() == "RayJob" && nested.At(u.Object, "spec", "shutdownAfterJobFinishes") != true {
		errs = append(errs, field.Forbidden(path.Child("spec", "shutdownAfterJobFinishes"),
			"must be true in a queue: otherwise the pods of the cluster run on when the job has ended, and keep their quota"))
	}
	if cluster := nested.Map(u.Object, strings.Split(place, ".")...); cluster["enableInTreeAutoscaling"] == true {
		errs = append(errs, field.Forbidden(path.Child(place, "enableInTreeAutoscaling"),
			"must not be true in a queue: Ray's autoscaler makes pods for which no quota was requested"))
	}
	return errs
}
