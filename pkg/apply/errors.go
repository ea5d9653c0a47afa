package apply

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Error is the failure of one object. Err is an unwrapped error of the API server, a *ForeignError or a *TerminatingError.
type Error struct {
	// Action is deleting, or empty for applying.
	Action                string
	Kind, Namespace, Name string
	// Stage is the stage of the object.
	Stage Stage
	Err   error
}

// wrapError returns the failure of an action on an object as an *Error; nil for nil.
func (k key) wrapError(action string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Action: action, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name, Stage: StageOf(k.GroupKind()), Err: err}
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %v", cmp.Or(e.Action, "applying"), objectTitle(e.Kind, e.Namespace, e.Name), e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error {
	return e.Err
}

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

func objectTitle(kind, namespace, name string) string {
	return kind + " " + types.NamespacedName{Namespace: namespace, Name: name}.String()
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
