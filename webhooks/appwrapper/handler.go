package appwrapper

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// off is the warning while the component does not run.
const disabled = "the component appwrapper is switched off: the AppWrapper is stored, but the operator does not reconcile it"

var kind = v1beta2.GroupVersion.WithKind(v1beta2.Kind).GroupKind()

// Settings of the webhooks.
type Settings struct {
	// DefaultQueueName is the local queue of AppWrappers that name none; empty for no default.
	DefaultQueueName string
	// ReviewAccess asks for each component whether the creator of the AppWrapper may create such an object.
	ReviewAccess bool
}

// source returns the settings. They may have to be read first, so it can fail.
type settingsFunc func(context.Context) (Settings, error)

// defaulter answers the mutating webhook.
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
	return author.Patched(patch)
}

// validator answers the validating webhook.
type validator struct {
	settings settingsFunc
	kinds    restMapper
	may      author.Access
	most     func(context.Context) int
	// on says that the component runs. It judges in either case: what is stored while it does not would be created later.
	on bool
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
	if !v.on {
		return response.WithWarnings(disabled)
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
	c := v.creation(request, wrapper)
	if !settings.ReviewAccess {
		c.access = nil
	}
	errs := c.validate(ctx)
	response := author.Invalid(kind, request.Name, errs)
	if c.unauthorized { // clients report what is Forbidden as a lack of rights
		response = author.Deny(kind, errs)
	}
	return response.WithWarnings(warnings(wrapper)...)
}

func (v *validator) creation(request admission.Request, wrapper *v1beta2.AppWrapper) *creation {
	return &creation{wrapper: wrapper, namespace: request.Namespace, user: request.UserInfo, mapper: v.kinds, access: author.LimitReviews(v.may), maxPodSets: v.most}
}

// update judges changes, but not those of an AppWrapper that is being deleted: its end must not depend on us.
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
	response := author.Invalid(kind, request.Name, errs)
	if len(errs) == 0 && isStart(old, updated) {
		if errs, err = v.reviewStart(ctx, request, updated); err != nil {
			return author.CheckFailed("the permissions of the user", err)
		}
		response = author.Deny(kind, errs)
	}
	if !maps.Equal(old.Annotations, updated.Annotations) {
		response = response.WithWarnings(ineffectiveAnnotations(updated)...)
	}
	return response
}

// decode reads an AppWrapper as the API server does: the names of fields count as they are written.
func decode(raw []byte) (*v1beta2.AppWrapper, error) {
	wrapper := &v1beta2.AppWrapper{}
	if err := kjson.Unmarshal(raw, wrapper); err != nil {
		return nil, fmt.Errorf("decoding the AppWrapper: %w", err)
	}
	return wrapper, nil
}

// unset refuses while the settings cannot be read: without them a queue or a review would be missing.
func settingsFailed(err error) admission.Response {
	return author.CheckFailed("the settings of the component appwrapper", err)
}

// labelLength is the longest value of a label, in bytes.
const maxLabelLength = 63

// labels returns the patch that gives a new object the default queue, where it names none, and the labels of its creator,
// whatever it says itself; nil when it has them. An error means that the object is no JSON object.
func labelsPatch(raw []byte, user authenticationv1.UserInfo, queue string) ([]author.Operation, error) {
	var object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := kjson.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("reading the labels: %w", err)
	}
	have, wanted := object.Metadata.Labels, map[string]string{}
	maps.Copy(wanted, have)
	wanted[v1beta2.LabelUser], wanted[v1beta2.LabelUserID] = Sanitize(user.Username), Sanitize(user.UID)
	if _, given := have[v1beta2.LabelQueue]; !given && queue != "" {
		wanted[v1beta2.LabelQueue] = queue
	}
	if maps.Equal(have, wanted) {
		return nil, nil
	}
	return []author.Operation{{Operation: "add", Path: "/metadata/labels", Value: wanted}}, nil
}

// Sanitize makes a label value of a user's name or UID: cut to 63 bytes, every character that a label may not have
// replaced by "_", and "-", "_" and "." taken off both ends. Clients know the result, so it must not change.
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
