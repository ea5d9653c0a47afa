package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// DisabledComponent answers for a component that is switched off: everything passes, with the text as a warning.
type DisabledComponent string

// Handle implements admission.Handler.
func (i DisabledComponent) Handle(context.Context, admission.Request) admission.Response {
	return admission.Allowed("").WithWarnings(string(i))
}

// Deny refuses with every violation in the message, and one cause for each; without violations it allows.
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

// Invalid refuses in the words of the API server for an invalid object; without violations it allows.
func Invalid(kind schema.GroupKind, name string, errs field.ErrorList) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("")
	}
	status := apierrors.NewInvalid(kind, name, errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// CheckFailed refuses because something that the answer depends on cannot be had now.
func CheckFailed(of string, err error) admission.Response {
	code := int32(http.StatusInternalServerError)
	if errors.Is(err, errTooMany) {
		code = http.StatusForbidden
	}
	return admission.Errored(code, fmt.Errorf("%s: %w", of, err))
}

// Warned adds warnings. A warning is the value of an HTTP header: one that has a line break never arrives.
func Warned(response admission.Response, warnings []string) admission.Response {
	for _, text := range warnings {
		response = response.WithWarnings(strings.Join(strings.Fields(text), " "))
	}
	return response
}

// Operation is one step of a JSON patch.
type Operation = jsonpatch.Operation

// Patched allows with a JSON patch; an empty one is none.
func Patched(patch []Operation) admission.Response {
	response := admission.Allowed("")
	if len(patch) == 0 {
		return response
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return CheckFailed("encoding the patch", err)
	}
	response.Patch, response.PatchType = body, new(admissionv1.PatchTypeJSONPatch)
	return response
}

// Changes reports whether a request creates or updates an object; others are let pass.
func Changes(request admission.Request) bool {
	return request.Operation == admissionv1.Create || request.Operation == admissionv1.Update
}
