package podset

import (
	"fmt"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// BeyondQuota returns what in an object makes its pods outgrow or outlive the quota that is requested for them, or keeps them from
// coming. Kueue refuses the first two when it queues these kinds by themselves, and decides itself when these are suspended. The
// path is that of the object.
func QuotaErrors(u *unstructured.Unstructured, path *field.Path) field.ErrorList {
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
		refuse("spec.suspend", true, neverResumed)
	}
	refuse(place+".enableInTreeAutoscaling", true,
		"must not be true in a queue: Ray's autoscaler makes pods for which no quota was requested: remove the field, and set replicas")
	refuse(place+".suspend", true, neverResumed)
	return errs
}

const neverResumed = "must not be true: nothing resumes what is suspended in a component: remove the field, and use spec.suspend of the AppWrapper"

// leastTTL is for how many seconds a component that has finished stays at least: an operator that was away has to see how it
// ended. Its clean-up is the AppWrapper's.
const minTTLSeconds = 3600

// ttls are the fields by which kinds that report completion delete themselves when they have finished.
var ttlFields = map[string][]string{
	"batch/v1:Job":                    {"spec", "ttlSecondsAfterFinished"},
	"jobset.x-k8s.io/v1alpha2:JobSet": {"spec", "ttlSecondsAfterFinished"},
	"kubeflow.org/v1:PyTorchJob":      {"spec", "runPolicy", "ttlSecondsAfterFinished"},
}

// RaiseTTL makes a component that would delete itself soon after its end stay for an hour, and returns a sentence about it; it
// is empty where nothing was changed.
func RaiseTTL(u *unstructured.Unstructured) string {
	path, known := ttlFields[u.GetAPIVersion()+":"+u.GetKind()]
	if !known {
		return ""
	}
	last := len(path) - 1
	parent := nested.Map(u.Object, path[:last]...)
	seconds, ok := parent[path[last]].(int64)
	if !ok || seconds < 0 || seconds >= minTTLSeconds {
		return ""
	}
	parent[path[last]] = int64(minTTLSeconds)
	return fmt.Sprintf("ttlSecondsAfterFinished is %d and will be %d, so that the outcome can be seen: the annotation %s says how long objects stay after success",
		seconds, minTTLSeconds, awv1beta2.AnnotationSuccessTTL)
}
