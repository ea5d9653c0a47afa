package podset

import (
	"fmt"
	"math"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// suspendPaths are the paths of the fields that suspend a component, by kind. Those of Ray are in QuotaErrors.
var suspendPaths = map[string]string{
	"batch/v1:Job":                    "spec.suspend",
	"jobset.x-k8s.io/v1alpha2:JobSet": "spec.suspend",
	"kubeflow.org/v1:PyTorchJob":      "spec.runPolicy.suspend",
}

// QuotaErrors returns errors for fields with which the pods of an object may exceed or outlive their quota, or are never created. Kueue
// rejects these fields in kinds that it queues itself, except for suspend, which Kueue controls, and for the bounds of Ray's replicas. path
// is the path of the object.
func QuotaErrors(u *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	reject := func(fieldPath string, value bool, detail string) {
		if (nested.At(u.Object, strings.Split(fieldPath, ".")...) == true) == value {
			errs = append(errs, field.Invalid(path.Child(fieldPath), value, detail))
		}
	}
	if suspendPath := suspendPaths[u.GetAPIVersion()+":"+u.GetKind()]; suspendPath != "" {
		reject(suspendPath, true, neverResumed)
	}
	jobPath := map[string]string{"RayJob": "spec", "RayCronJob": "spec.jobTemplate"}[u.GetKind()]
	clusterPath := map[string]string{"RayCluster": "spec", "RayService": "spec.rayClusterConfig"}[u.GetKind()]
	if jobPath != "" {
		clusterPath = jobPath + ".rayClusterSpec"
	}
	if u.GroupVersionKind().Group != rayv1.GroupVersion.Group || clusterPath == "" {
		return errs
	}
	if jobPath != "" {
		reject(jobPath+".shutdownAfterJobFinishes", false,
			"must be true in a queue: otherwise the pods of the cluster keep running and keep their quota when the job has ended: set it to true")
		reject(jobPath+".suspend", true, neverResumed)
	}
	if u.GetKind() == "RayCronJob" {
		reject("spec.suspend", true, neverResumed)
	}
	reject(clusterPath+".enableInTreeAutoscaling", true,
		"must not be true in a queue: Ray's autoscaler creates pods for which no quota was requested: remove the field, and set replicas")
	reject(clusterPath+".suspend", true, neverResumed)
	cluster := nested.Map(u.Object, strings.Split(clusterPath, ".")...)
	return append(errs, replicasErrors(cluster, path.Child(clusterPath, "workerGroupSpecs"))...)
}

// replicasErrors returns errors for worker groups whose replicas are outside of their bounds: KubeRay creates minReplicas or maxReplicas
// instead, but the quota is requested for replicas, as Kueue does for a RayCluster.
func replicasErrors(cluster map[string]any, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	n := &numberReader{} // podset.Check reports its error
	for i, entry := range nested.List(cluster, "workerGroupSpecs") {
		group := nested.Map(entry)
		replicas, minimum := n.int32Field(group, "", "replicas", 1), n.int32Field(group, "", "minReplicas", 0)
		maximum := n.int32Field(group, "", "maxReplicas", math.MaxInt32)
		if n.err == nil && (replicas < minimum || group["replicas"] != nil && replicas > maximum) {
			detail := fmt.Sprintf("must be from minReplicas to maxReplicas (%d to %d): otherwise KubeRay creates more or fewer pods than the quota has", minimum, maximum)
			errs = append(errs, field.Invalid(path.Index(i).Child("replicas"), replicas, detail))
		}
	}
	return errs
}

const neverResumed = "must not be true: a suspended component is never resumed: remove the field, and use spec.suspend of the AppWrapper"

// minTTLSeconds is the minimum ttlSecondsAfterFinished of a component: the operator must be able to read the outcome after a restart. The
// AppWrapper controller deletes the component.
const minTTLSeconds = 3600

// ttlFields are the fields that limit how long a finished object exists, by kind.
var ttlFields = map[string][]string{
	"batch/v1:Job":                    {"spec", "ttlSecondsAfterFinished"},
	"jobset.x-k8s.io/v1alpha2:JobSet": {"spec", "ttlSecondsAfterFinished"},
	"kubeflow.org/v1:PyTorchJob":      {"spec", "runPolicy", "ttlSecondsAfterFinished"},
}

// RaiseTTL raises a ttlSecondsAfterFinished below an hour to an hour, and returns a warning about the change, or "" if nothing changed.
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
	return fmt.Sprintf("ttlSecondsAfterFinished is %d and will be %d, because the operator must read the outcome: set annotation %s to limit how long objects are retained after success",
		seconds, minTTLSeconds, awv1beta2.AnnotationSuccessTTL)
}
