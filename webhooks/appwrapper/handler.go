package appwrapper

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// off is what users are told while the component does not run.
const off = "the component appwrapper is switched off: the AppWrapper is stored as it is, and nothing acts on it"

// Settings of the webhooks.
type Settings struct {
	// DefaultQueueName is the local queue of AppWrappers that name none; empty for no default.
	DefaultQueueName string
	// ReviewAccess asks for each component whether the creator of the AppWrapper may create such an object.
	ReviewAccess bool
}

// source returns the settings. They may have to be read first, so it can fail.
type source func(context.Context) (Settings, error)

// defaulter answers the mutating webhook.
type defaulter struct{ settings source }

// Handle implements admission.Handler.
func (d *defaulter) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	settings, err := d.settings(ctx)
	if err != nil {
		return unset(err)
	}
	patch, err := labels(request.Object.Raw, request.UserInfo, settings.DefaultQueueName)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	response := admission.Allowed("")
	if patch != nil {
		response.Patch, response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	}
	return response
}

// validator answers the validating webhook.
type validator struct {
	settings source
	kinds    kinds
	may      access
}

// Handle implements admission.Handler.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	switch request.Operation {
	case admissionv1.Create:
		return v.create(ctx, request)
	case admissionv1.Update:
		return v.update(request)
	default:
		return admission.Allowed("")
	}
}

func (v *validator) create(ctx context.Context, request admission.Request) admission.Response {
	wrapper, err := decode(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	settings, err := v.settings(ctx)
	if err != nil {
		return unset(err)
	}
	c := &creation{wrapper: wrapper, namespace: request.Namespace, user: request.UserInfo, kinds: v.kinds}
	if settings.ReviewAccess {
		c.may = v.may
	}
	return answerTo(c.judge(ctx)).WithWarnings(warnings(wrapper)...)
}

// update judges changes, but not those of an AppWrapper that is being deleted: its end must not depend on us.
func (v *validator) update(request admission.Request) admission.Response {
	old, err := decode(request.OldObject.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if old.DeletionTimestamp != nil {
		return admission.Allowed("")
	}
	updated, err := decode(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	response := answerTo(changes(old, updated))
	if !maps.Equal(old.Annotations, updated.Annotations) {
		response = response.WithWarnings(ineffective(updated)...)
	}
	return response
}

// idle answers for a component that is switched off.
type idle struct{}

// Handle implements admission.Handler.
func (idle) Handle(context.Context, admission.Request) admission.Response {
	return admission.Allowed("").WithWarnings(off)
}

// decode reads an AppWrapper as the API server does: the names of fields count as they are written.
func decode(raw []byte) (*v1beta2.AppWrapper, error) {
	wrapper := &v1beta2.AppWrapper{}
	if err := kjson.Unmarshal(raw, wrapper); err != nil {
		return nil, fmt.Errorf("decoding the AppWrapper: %w", err)
	}
	return wrapper, nil
}

// answerTo refuses with every violation in the message, and one cause for each.
func answerTo(errs field.ErrorList) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("")
	}
	details := &metav1.StatusDetails{Group: v1beta2.GroupVersion.Group, Kind: v1beta2.Kind}
	for _, err := range errs {
		details.Causes = append(details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(err.Type), Message: err.ErrorBody(), Field: err.Field,
		})
	}
	response := admission.Denied(errs.ToAggregate().Error())
	response.Result.Message, response.Result.Reason = errs.ToAggregate().Error(), metav1.StatusReasonForbidden
	response.Result.Details = details
	return response
}

// unset refuses while the settings cannot be read: without them a queue or a review would be missing.
func unset(err error) admission.Response {
	return admission.Errored(http.StatusInternalServerError, fmt.Errorf("the settings of the component appwrapper: %w", err))
}
