package podset

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// leastTTL is for how many seconds a component that has finished stays at least: an operator that was away has to see how it
// ended. Its clean-up is the AppWrapper's.
const leastTTL = 3600

// ttls are the fields by which kinds that report completion delete themselves when they have finished.
var ttls = map[string][]string{
	"batch/v1:Job":                    {"spec", "ttlSecondsAfterFinished"},
	"jobset.x-k8s.io/v1alpha2:JobSet": {"spec", "ttlSecondsAfterFinished"},
	"kubeflow.org/v1:PyTorchJob":      {"spec", "runPolicy", "ttlSecondsAfterFinished"},
}

// RaiseTTL makes a component that would delete itself soon after its end stay for an hour, and returns a sentence about it; it
// is empty where nothing was changed.
func RaiseTTL(u *unstructured.Unstructured) string {
	path, known := ttls[u.GetAPIVersion()+":"+u.GetKind()]
	if !known {
		return ""
	}
	last := len(path) - 1
	parent := nested.Map(u.Object, path[:last]...)
	seconds, ok := parent[path[last]].(int64)
	if !ok || seconds < 0 || seconds >= leastTTL {
		return ""
	}
	parent[path[last]] = int64(leastTTL)
	return fmt.Sprintf("ttlSecondsAfterFinished is %d and will be %d, so that the outcome can be seen: the annotation %s says how long objects stay after success",
		seconds, leastTTL, awv1beta2.AnnotationSuccessTTL)
}
