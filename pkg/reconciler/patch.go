package reconciler

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusPatch returns the merge patch for the status alone, bound to the resource version that was read; nil when
// nothing differs in it.
func statusPatch(before, after client.Object) ([]byte, error) {
	if equality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	whole, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return nil, fmt.Errorf("computing the status patch: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(whole, &fields); err != nil {
		return nil, fmt.Errorf("reading the status patch: %w", err)
	}
	status, differs := fields["status"]
	if !differs {
		return nil, nil
	}
	return json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": before.GetResourceVersion()}, "status": status})
}

// settle ends a reconcile that has failed to write the object itself. That the object changed between reading and writing it is no
// failure: the next reconcile sees the change.
func settle(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: ConflictRetry}, nil
	}
	return ctrl.Result{}, err
}

// clone copies an object without losing its type, as the contract of runtime.Object demands.
func clone[T client.Object](obj T) T { return obj.DeepCopyObject().(T) }
