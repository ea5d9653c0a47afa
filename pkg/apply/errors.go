package apply

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Error says which object could not be applied. Err holds the reason: an error of the API server as it came, a
// *ForeignError, or a *DeletingError.
type Error struct {
	Kind, Namespace, Name string
	// Stage is that of the object.
	Stage Stage
	Err   error
}

// failed returns what went wrong with an object as an *Error, nil for nothing.
func (k key) failed(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name, Stage: StageOf(k.GroupKind()), Err: err}
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("applying %s: %v", title(e.Kind, e.Namespace, e.Name), e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error {
	return e.Err
}

// ForeignError says that the name of a desired object is taken by one that this operator did not make. Nothing has
// been written. It stays until a user acts, so it belongs into a condition.
type ForeignError struct {
	Kind, Namespace, Name string
	// Controller is "Kind name" of the other object that controls it, or the component that made it; empty when there is none.
	Controller string
}

// Error implements error. The text names the object and the fix.
func (e *ForeignError) Error() string {
	because := "was not made by this operator"
	if e.Controller != "" {
		because = "belongs to " + e.Controller
	}
	return fmt.Sprintf("%s exists and %s; delete or rename it, and it will be created",
		title(e.Kind, e.Namespace, e.Name), because)
}

func title(kind, namespace, name string) string {
	return kind + " " + types.NamespacedName{Namespace: namespace, Name: name}.String()
}

// Blocked says that an error consists of nothing but objects that stand in the way, because they are foreign or do not
// go: trying again at once would change nothing.
func Blocked(err error) bool {
	return OnlyErrors(err, func(err error) bool {
		switch e := any(err).(type) {
		case *ForeignError:
			return true
		case *DeletingError:
			return e.Stuck
		}
		return false
	})
}

// OnlyErrors says that an error consists of nothing but what a test holds for. The tree of joined and wrapped errors is walked branch by
// branch, from the outside, until the test holds. No error at all is nothing of the kind.
func OnlyErrors(err error, holds func(error) bool) bool {
	if err == nil {
		return false
	}
	if joined, ok := any(err).(interface{ Unwrap() []error }); ok {
		branches := joined.Unwrap()
		return len(branches) > 0 && !slices.ContainsFunc(branches, func(branch error) bool { return !OnlyErrors(branch, holds) })
	}
	return holds(err) || OnlyErrors(errors.Unwrap(err), holds)
}
