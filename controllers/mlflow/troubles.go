package mlflow

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// refusedRetry is how often something is tried again that the API server refused: no event reports when it would not any more.
const refusedRetry = time.Minute

// troubles are the failures of a reconciliation that keep nothing else from being done. Each stands in a condition of its own.
type troubles struct{ errs []error }

// add notes a failure; nil is none.
func (t *troubles) add(what string, err error) {
	if err != nil {
		t.errs = append(t.errs, fmt.Errorf("%s: %w", what, err))
	}
}

// conclude joins the troubles with how the reconciliation ended. What the API server refuses is tried again after a minute, all else
// with the back-off of an error.
func (t *troubles) conclude(ctx context.Context, end error) error {
	for _, err := range t.errs {
		switch {
		case apply.Vanishing(err):
			err = &reconciler.Wait{For: "what is being deleted to be gone", Retry: time.Second}
		case apply.Only(err, isRefusal):
			log.FromContext(ctx).Info("Something was refused, and everything else continues", "error", err.Error())
			err = &reconciler.Wait{For: "what was refused: " + err.Error(), Retry: refusedRetry}
		}
		end = errors.Join(end, err)
	}
	return end
}

// isRefusal says that an error stays the same until an object changes.
func isRefusal(err error) bool {
	if apply.Blocked(err) {
		return true
	}
	_, status := any(err).(apierrors.APIStatus)
	return status && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
}
