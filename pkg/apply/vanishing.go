package apply

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Vanishing says that an error of Apply or Prune consists of nothing but objects that are just going, or whose API is: its definition
// is being deleted, or is deleted and capability detection has not caught up. Waiting for a moment is all there is to do.
func Vanishing(err error) bool {
	return Only(err, func(err error) bool {
		if going, ok := any(err).(*DeletingError); ok {
			return !going.Stuck
		}
		e, ok := any(err).(*Error)
		return ok && goes(e.Err)
	})
}

// goes recognises what the API server says about objects of a definition that is terminating (403) or gone (404).
func goes(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) ||
		(apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)) && strings.Contains(err.Error(), "custom resource definition is terminating")
}
