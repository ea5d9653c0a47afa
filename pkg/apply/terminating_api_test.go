package apply

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestIsTerminating(t *testing.T) {
	routes := schema.GroupResource{Group: "gateway.networking.k8s.io", Resource: "httproutes"}
	objectError := func(err error) error { return &Error{Kind: "HTTPRoute", Name: "x", Err: err} }
	terminating := objectError(apierrors.NewForbidden(routes, "x", errors.New("create not allowed while custom resource definition is terminating")))
	notFound := objectError(fmt.Errorf("wrapped: %w", apierrors.NewNotFound(routes, "x")))
	unknown := objectError(&meta.NoKindMatchError{})
	denied := objectError(apierrors.NewForbidden(routes, "x", errors.New("not yours")))
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":               {nil, false},
		"terminating":            {terminating, true},
		"not found":              {notFound, true},
		"no namespace":           {objectError(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x")), false},
		"no match":               {unknown, true},
		"all joined":             {errors.Join(terminating, notFound, unknown), true},
		"wrapped":                {fmt.Errorf("applying objects: %w", errors.Join(notFound)), true},
		"denied":                 {denied, false},
		"terminating and denied": {errors.Join(terminating, denied), false},
		"another error":          {errors.Join(notFound, errors.New("x")), false},
		"not an Error":           {apierrors.NewNotFound(routes, "x"), false},
	} {
		if got := IsTerminating(c.err); got != c.want {
			t.Errorf("%s: IsTerminating(%v) = %t, want %t", name, c.err, got, c.want)
		}
	}
}
