package openshift

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// A joined error counts as blocked, or as caused by a terminating namespace, only if all its errors do.
func TestJoinedErrors(t *testing.T) {
	foreign := &apply.Error{Err: &apply.ForeignError{Kind: "Secret"}}
	terminating := &apply.Error{Err: &apierrors.StatusError{ErrStatus: metav1.Status{
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
	}}}
	for name, c := range map[string]struct {
		err                  error
		blocked, terminating bool
	}{
		"foreign object":                 {foreign, true, false},
		"two foreign objects":            {errors.Join(foreign, foreign), true, false},
		"nested joins":                   {errors.Join(errors.Join(foreign), foreign), true, false},
		"foreign object and failure":     {errors.Join(foreign, errDown), false, false},
		"failure":                        {errDown, false, false},
		"terminating namespace":          {errors.Join(terminating, terminating), false, true},
		"terminating and failure":        {errors.Join(terminating, errDown), false, false},
		"terminating and foreign object": {errors.Join(terminating, foreign), false, false},
	} {
		if apply.IsBlocked(c.err) != c.blocked || isNamespaceTerminating(c.err) != c.terminating {
			t.Errorf("%s: blocked %t, terminating %t", name, apply.IsBlocked(c.err), isNamespaceTerminating(c.err))
		}
	}
}
