package apply

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Error is the failure of one object. Err may wrap an error of the API server, a *ForeignError or a *TerminatingError.
type Error struct {
	// Action is deleting, or empty for an apply, create or patch, which messages call applying.
	Action                string
	Kind, Namespace, Name string
	Err                   error
}

// wrapError returns the failure of an action on an object as an *Error; nil for nil.
func (k Key) wrapError(action string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Action: action, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name, Err: err}
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %v", cmp.Or(e.Action, "applying"), objectTitle(e.Kind, e.Namespace, e.Name), e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ForeignError reports that an existing object of another owner or operator has the name of a desired object. Nothing was written. Only a
// user can resolve it, so it belongs in a condition.
type ForeignError struct {
	Kind, Namespace, Name string
	// Controller is "Kind name" of its controller, or "component name" of the component that manages it; empty for neither.
	Controller string
}

// Error implements error. The message includes the fix.
func (e *ForeignError) Error() string {
	because := "was not created by this operator"
	if e.Controller != "" {
		because = "belongs to " + e.Controller
	}
	return fmt.Sprintf("%s exists and %s; delete it or recreate it under another name, and the operator will create its own",
		objectTitle(e.Kind, e.Namespace, e.Name), because)
}

// titlesAfter returns the objects of the stages after a failed one, each as "Kind namespace/name".
func (d Desired) titlesAfter(failed Stage) (titles []string) {
	for stage := failed + 1; stage <= Exposure; stage++ {
		for _, object := range d.InStages(stage) {
			k := object.Key()
			titles = append(titles, objectTitle(k.Kind, k.Namespace, k.Name))
		}
	}
	return titles
}

// WithHeldBack returns an error that also names the objects, each as "Kind namespace/name", that are held back because of it.
func WithHeldBack(err error, heldBack ...string) error {
	if len(heldBack) == 0 {
		return err
	}
	return fmt.Errorf("%w; until then not written: %s", err, strings.Join(heldBack, ", "))
}

// TerminatingError reports an object that is terminating and will be recreated afterwards.
type TerminatingError struct {
	Kind, Namespace, Name string
	// Since is the deletion timestamp, Finalizers are the remaining finalizers.
	Since      time.Time
	Finalizers []string
	// TimedOut is true if deletionGracePeriod has passed: the caller should set a condition. If it is false, the object lacks the labels of
	// this operator. Its deletion then causes no watch event, and the caller must poll.
	TimedOut bool
}

// NewTerminatingError returns the error for an object with a deletion timestamp.
func NewTerminatingError(kind string, object metav1.Object) *TerminatingError {
	return &TerminatingError{
		Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), Since: object.GetDeletionTimestamp().Time, Finalizers: object.GetFinalizers(),
	}
}

// Error implements error.
func (e *TerminatingError) Error() string {
	text := objectTitle(e.Kind, e.Namespace, e.Name) + " has been terminating since " + e.Since.UTC().Format(time.RFC3339)
	if len(e.Finalizers) > 0 {
		text += ", held by finalizers " + strings.Join(e.Finalizers, ", ") + " until their controllers remove them,"
	}
	return text + " and the operator recreates it afterwards"
}

func objectTitle(kind, namespace, name string) string {
	return kind + " " + types.NamespacedName{Namespace: namespace, Name: name}.String()
}

// AllErrorsMatch reports whether err consists only of errors for which matches returns true. It walks the tree of joined and wrapped errors
// from the outside until matches returns true. It returns false for nil.
func AllErrorsMatch(err error, matches func(error) bool) bool {
	if err == nil {
		return false
	}
	if joined, ok := any(err).(interface{ Unwrap() []error }); ok {
		branches := joined.Unwrap()
		return len(branches) > 0 && !slices.ContainsFunc(branches, func(branch error) bool { return !AllErrorsMatch(branch, matches) })
	}
	return matches(err) || AllErrorsMatch(errors.Unwrap(err), matches)
}

// IsBlocked reports whether all errors are about foreign objects or about deletions that timed out. A retry would not help.
func IsBlocked(err error) bool {
	return AllErrorsMatch(err, func(err error) bool {
		switch e := any(err).(type) {
		case *ForeignError:
			return true
		case *TerminatingError:
			return e.TimedOut
		}
		return false
	})
}

// IsTerminating reports whether all errors of an Apply are about terminating objects that are not timed out, terminating CRDs, or CRDs that
// were deleted before package capability noticed. Such errors resolve without a user. A missing namespace or role does not.
func IsTerminating(err error) bool {
	return AllErrorsMatch(err, func(err error) bool {
		if terminating, ok := any(err).(*TerminatingError); ok {
			return !terminating.TimedOut
		}
		e, ok := any(err).(*Error)
		return ok && (apierrors.IsNotFound(e.Err) && !isNeededObjectMissing(e.Err) || meta.IsNoMatchError(e.Err) || // the CRD was deleted
			(apierrors.IsForbidden(e.Err) || apierrors.IsMethodNotSupported(e.Err)) && strings.Contains(err.Error(), "custom resource definition is terminating"))
	})
}

// isNeededObjectMissing reports whether a NotFound error is about the namespace of an object or the role of a binding.
func isNeededObjectMissing(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && slices.Contains([]string{"namespaces", "roles", "clusterroles"}, status.Status().Details.Kind)
}

// OnlyExposureFailed reports whether all errors are about objects of the stage Exposure, so that the workloads are as desired.
func OnlyExposureFailed(err error) bool {
	return AllErrorsMatch(err, func(err error) bool {
		e, ok := any(err).(*Error)
		return ok && stageOf[e.Kind] == Exposure
	})
}
