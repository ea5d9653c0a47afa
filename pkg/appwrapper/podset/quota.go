package podset

import (
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// BeyondQuota returns what in an object makes its pods outgrow or outlive the quota that is requested for them, or keeps them from
// coming. Kueue refuses the first two when it queues these kinds by themselves, and decides itself when these are suspended. The
// path is that of the object.
func BeyondQuota(u *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	place := map[string]string{"RayCluster": "spec", "RayJob": "spec.rayClusterSpec", "RayService": "spec.rayClusterConfig"}[u.GetKind()]
	if u.GroupVersionKind().Group != rayv1.GroupVersion.Group || place == "" {
		return nil
	}
	refuse := func(at string, value bool, detail string) {
		if (nested.At(u.Object, strings.Split(at, ".")...) == true) == value {
			errs = append(errs, field.Invalid(path.Child(at), value, detail))
		}
	}
	if u.GetKind() == "RayJob" {
		refuse("spec.shutdownAfterJobFinishes", false,
			"must be true in a queue: otherwise the pods of the cluster run on when the job has ended, and keep their quota: set it to true")
		refuse("spec.suspend", true, resumedByNone)
	}
	refuse(place+".enableInTreeAutoscaling", true,
		"must not be true in a queue: Ray's autoscaler makes pods for which no quota was requested: remove the field, and set replicas")
	refuse(place+".suspend", true, resumedByNone)
	return errs
}

const resumedByNone = "must not be true: nothing resumes what is suspended in a component: remove the field, and use spec.suspend of the AppWrapper"
