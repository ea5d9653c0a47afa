package reconciler

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusPatch returns the merge patch of the status, with the resourceVersion of the original as a precondition; nil if the status is
// unchanged.
func statusPatch(original, obj client.Object) ([]byte, error) {
	if equality.Semantic.DeepEqual(original, obj) {
		return nil, nil
	}
	patch, err := client.MergeFrom(original).Data(obj)
	if err != nil {
		return nil, fmt.Errorf("computing the status patch: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, fmt.Errorf("reading the status patch: %w", err)
	}
	status, changed := fields["status"]
	if !changed {
		return nil, nil
	}
	return json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": original.GetResourceVersion()}, "status": status})
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
