package appwrapper

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// disabledWarning is the warning while the component is disabled.
const disabledWarning = "the component appwrapper is disabled: the AppWrapper is stored, but the operator does not reconcile it: set ENABLE_APPWRAPPER=true to change this"

var kind = v1beta2.GroupVersion.WithKind(v1beta2.Kind).GroupKind()

// Settings are the settings of the webhooks.
type Settings struct {
	// DefaultQueueName is the local queue of AppWrappers without a queue label; "" for none.
	DefaultQueueName string
	// ReviewAccess requires that the user who creates or starts an AppWrapper may create each component.
	ReviewAccess bool
}

// settingsFunc returns the settings.
type settingsFunc func(context.Context) (Settings, error)

// defaulter is the mutating webhook.
type defaulter struct{ settings settingsFunc }

// Handle implements admission.Handler.
func (d *defaulter) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	settings, err := d.settings(ctx)
	if err != nil {
		return settingsFailed(err)
	}
	patch, err := labelsPatch(request.Object.Raw, request.UserInfo, settings.DefaultQueueName)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return admission.Patched("", patch...)
}

// validator is the validating webhook.
type validator struct {
	settings    settingsFunc
	mapper      restMapper
	access      pkgadmission.Access
	podSetLimit func(context.Context) int
	// enabled reports whether the component is enabled. Requests are validated in any case, because the component may be enabled later.
	enabled bool
}

// Handle implements admission.Handler.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	response := admission.Allowed("")
	switch request.Operation {
	case admissionv1.Create:
		response = v.create(ctx, request)
	case admissionv1.Update:
		response = v.update(ctx, request)
	}
	if !v.enabled {
		return response.WithWarnings(disabledWarning)
	}
	return response
}

func (v *validator) create(ctx context.Context, request admission.Request) admission.Response {
	wrapper, err := decode(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	settings, err := v.settings(ctx)
	if err != nil {
		return settingsFailed(err)
	}
	c := v.newCreationValidator(request, wrapper)
	if !settings.ReviewAccess {
		c.access = nil
	}
	errs := c.validate(ctx)
	response := pkgadmission.Invalid(kind, request.Name, errs)
	if c.unauthorized { // clients treat Forbidden as missing permissions
		response = pkgadmission.Deny(kind, errs)
	}
	return response.WithWarnings(warnings(wrapper)...)
}

func (v *validator) newCreationValidator(request admission.Request, wrapper *v1beta2.AppWrapper) *creationValidator {
	return &creationValidator{wrapper: wrapper, namespace: request.Namespace, user: request.UserInfo, mapper: v.mapper, access: pkgadmission.LimitReviews(v.access), podSetLimit: v.podSetLimit}
}

// update validates an update, unless the AppWrapper is being deleted: deletion must not depend on the webhook.
func (v *validator) update(ctx context.Context, request admission.Request) admission.Response {
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
	errs := append(immutableErrors(old, updated), newlyQueuedErrors(old, updated)...)
	response := pkgadmission.Invalid(kind, request.Name, errs)
	if len(errs) == 0 && isStart(old, updated) {
		if errs, err = v.reviewStart(ctx, request, updated); err != nil {
			return pkgadmission.CheckFailed("the permissions of the user", err)
		}
		response = pkgadmission.Deny(kind, errs)
	}
	if !maps.Equal(old.Annotations, updated.Annotations) {
		response = response.WithWarnings(ineffectiveAnnotations(updated)...)
	}
	return response
}

// decode decodes an AppWrapper with case-sensitive field names, as the API server does.
func decode(raw []byte) (*v1beta2.AppWrapper, error) {
	wrapper := &v1beta2.AppWrapper{}
	if err := kjson.Unmarshal(raw, wrapper); err != nil {
		return nil, fmt.Errorf("decoding the AppWrapper: %w", err)
	}
	return wrapper, nil
}

// settingsFailed rejects a request while the settings cannot be read: without them the default queue or the access review would be skipped.
func settingsFailed(err error) admission.Response {
	return pkgadmission.CheckFailed("the settings of the component appwrapper", err)
}

// maxLabelLength is the maximum length of a label value in bytes.
const maxLabelLength = 63

// labelsPatch returns the patch that sets the creator labels and, if there is no queue label, the default queue; nil if nothing changes.
func labelsPatch(raw []byte, user authenticationv1.UserInfo, queue string) ([]jsonpatch.Operation, error) {
	object := &metav1.PartialObjectMetadata{}
	if err := kjson.Unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("reading the labels: %w", err)
	}
	current, desired := object.Labels, map[string]string{}
	maps.Copy(desired, current)
	desired[v1beta2.LabelUser], desired[v1beta2.LabelUserID] = Sanitize(user.Username), Sanitize(user.UID)
	if _, found := current[v1beta2.LabelQueue]; !found && queue != "" {
		desired[v1beta2.LabelQueue] = queue
	}
	if maps.Equal(current, desired) {
		return nil, nil
	}
	return []jsonpatch.Operation{{Operation: "add", Path: "/metadata/labels", Value: desired}}, nil
}

// Sanitize converts a user name or UID to a label value: it truncates to 63 bytes, replaces invalid characters by "_", and trims "-", "_" and
// "." at both ends. Clients depend on the result, so it must never change.
func Sanitize(name string) string {
	if len(name) > maxLabelLength {
		name = name[:maxLabelLength]
	}
	var value strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			value.WriteRune(r)
		default:
			value.WriteByte('_')
		}
	}
	return strings.Trim(value.String(), "-_.")
}
