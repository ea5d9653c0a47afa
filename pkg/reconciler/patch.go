package reconciler

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	var body struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Status json.RawMessage `json:"status,omitempty"`
	}
	if err := json.Unmarshal(whole, &body); err != nil {
		return nil, fmt.Errorf("reading the status patch: %w", err)
	}
	if len(body.Status) == 0 {
		return nil, nil
	}
	body.Metadata.ResourceVersion = before.GetResourceVersion()
	return json.Marshal(body)
}

// patchError is a failure of a write of the shell itself, which tells its conflicts from those of the phases.
type patchError struct {
	what string
	err  error
}

// Error implements error.
func (e *patchError) Error() string { return "patching " + e.what + ": " + e.err.Error() }

// Unwrap implements errors.Unwrap.
func (e *patchError) Unwrap() error { return e.err }

// isOwnConflict reports whether a reconcile ended only because the object changed between reading it and writing its status
// or finalizers. That is no failure: the next reconcile sees the change. An error of a phase beside it stays an error.
func isOwnConflict(err error) bool {
	for err != nil {
		switch e := any(err).(type) { // not errors.As: the branches of joined errors must not count
		case *patchError:
			return apierrors.IsConflict(e.err)
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return false
		}
	}
	return false
}

// clone copies an object without losing its type.
func clone[T client.Object](obj T) T {
	c, ok := obj.DeepCopyObject().(T)
	if !ok {
		return obj // a DeepCopyObject that returns another type breaks the contract of runtime.Object
	}
	return c
}
