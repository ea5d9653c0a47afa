package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// DisabledComponent is the handler of a disabled component: it allows every request, with its text as a warning.
type DisabledComponent string

// Handle implements admission.Handler.
func (c DisabledComponent) Handle(context.Context, admission.Request) admission.Response {
	return admission.Allowed("").WithWarnings(string(c))
}

// Unless returns the given handler if the component is enabled, and otherwise c.
func (c DisabledComponent) Unless(enabled bool, handler admission.Handler) admission.Handler {
	if enabled {
		return handler
	}
	return c
}

// Deny returns a Forbidden response with one cause per error, or allows the request if there is none.
func Deny(kind schema.GroupKind, errs field.ErrorList) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("")
	}
	response := admission.Denied("")
	response.Result.Message, response.Result.Reason = errs.ToAggregate().Error(), metav1.StatusReasonForbidden
	response.Result.Details = &metav1.StatusDetails{Group: kind.Group, Kind: kind.Kind}
	for _, err := range errs {
		response.Result.Details.Causes = append(response.Result.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(err.Type), Message: err.ErrorBody(), Field: err.Field,
		})
	}
	return response
}

// Invalid returns the response of the API server for an invalid object, or allows the request if there is no error.
func Invalid(kind schema.GroupKind, name string, errs field.ErrorList) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("")
	}
	status := apierrors.NewInvalid(kind, name, errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// CheckFailed rejects a request because the given subject could not be checked.
func CheckFailed(subject string, err error) admission.Response {
	code := int32(http.StatusInternalServerError)
	if errors.Is(err, errTooManyReviews) {
		code = http.StatusForbidden
	}
	return admission.Errored(code, fmt.Errorf("%s: %w", subject, err))
}

// AddWarnings adds warnings to a response. Line breaks are replaced, because a warning is an HTTP header.
func AddWarnings(response admission.Response, warnings []string) admission.Response {
	for _, text := range warnings {
		response = response.WithWarnings(strings.Join(strings.Fields(text), " "))
	}
	return response
}

// IsWrite reports whether a request creates or updates an object.
func IsWrite(request admission.Request) bool {
	return request.Operation == admissionv1.Create || request.Operation == admissionv1.Update
}
