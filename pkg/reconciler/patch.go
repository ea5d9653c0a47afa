package reconciler

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusPatch returns the merge patch of the status, with the resourceVersion of the original as a precondition; nil if the status is
// unchanged.
func statusPatch(original, obj client.Object) []byte {
	if equality.Semantic.DeepEqual(original, obj) {
		return nil
	}
	patch, _ := client.MergeFrom(original).Data(obj) // cannot fail for two objects of one API type
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(patch, &fields)
	status, changed := fields["status"]
	if !changed {
		return nil
	}
	patch, _ = json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": original.GetResourceVersion()}, "status": status})
	return patch
}

// requeueOnConflict returns the result for a failed update of the reconciled object. A conflict is not an error: the next reconcile reads
// the new version.
func requeueOnConflict(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: ConflictRetry}, nil
	}
	return ctrl.Result{}, err
}

// clone returns a deep copy with the type of the object.
func clone[T client.Object](obj T) T { return obj.DeepCopyObject().(T) }
