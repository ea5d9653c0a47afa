package raycluster

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// disabledHandler allows every request with a warning.
const disabledHandler = pkgadmission.DisabledComponent("the component raycluster is disabled: the RayCluster is stored unchanged, but the operator does not secure it: set ENABLE_RAYCLUSTER=true to change this")

// settingsFunc returns the current settings.
type settingsFunc func(context.Context) (Settings, error)

// reviewRequest is the admission request of a RayCluster.
type reviewRequest struct {
	cluster, old raycluster.Cluster
	// shapeErrors are type errors of the object, which prevent further validation.
	shapeErrors field.ErrorList
	// storedInvalid reports whether the stored cluster has the same error, which must not block changes of finalizers.
	storedInvalid bool
}

// parseRequest returns the objects of a request, and false for operations that the webhooks ignore.
func parseRequest(request admission.Request) (*reviewRequest, bool, error) {
	if !pkgadmission.IsWrite(request) {
		return nil, false, nil
	}
	review := &reviewRequest{}
	var err error
	if review.cluster, err = parseCluster(request.Object.Raw, request.Namespace); err != nil {
		return nil, false, err
	}
	review.shapeErrors = shapeErrors(review.cluster)
	if request.Operation == admissionv1.Update {
		if review.old, err = parseCluster(request.OldObject.Raw, request.Namespace); err != nil {
			return nil, false, err
		}
		if stored := shapeErrors(review.old); len(stored) > 0 { // the stored object exists, but its injections are unusable
			review.storedInvalid = len(review.shapeErrors) > 0 && review.shapeErrors[0].Error() == stored[0].Error()
			review.old = raycluster.View(map[string]any{"metadata": review.old.Object()["metadata"]})
		}
	}
	return review, true, nil
}

var errNoObject = errors.New("reading the RayCluster: it is not a JSON object")

func parseCluster(raw []byte, namespace string) (raycluster.Cluster, error) {
	c, err := raycluster.Parse(raw)
	if err != nil {
		return c, err
	}
	if c.Object() == nil {
		return c, errNoObject
	}
	if metadata, _ := c.Object()["metadata"].(map[string]any); metadata != nil && namespace != "" {
		metadata["namespace"] = namespace // may be unset on creation
	}
	return c, nil
}

// handle parses a request, reads the settings and calls review. onInvalid handles a request with shapeErrors.
func (settings settingsFunc) handle(ctx context.Context, request admission.Request, onInvalid func(*reviewRequest) admission.Response,
	review func(*reviewRequest, Settings) admission.Response) admission.Response {
	parsed, relevant, err := parseRequest(request)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case !relevant || parsed.old.Terminating(): // deletion must not depend on the webhook
		return admission.Allowed("")
	case len(parsed.shapeErrors) > 0:
		return onInvalid(parsed)
	}
	s, err := settings(ctx)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return review(parsed, s)
}

// defaulter is the mutating webhook.
type defaulter struct{ settings settingsFunc }

// Handle implements admission.Handler.
func (d *defaulter) Handle(ctx context.Context, request admission.Request) admission.Response {
	allow := func(*reviewRequest) admission.Response { return admission.Allowed("") }
	return d.settings.handle(ctx, request, allow, func(r *reviewRequest, s Settings) admission.Response {
		modified, warnings := r.withDefaults(s, request.UID)
		return patchResponse(r.cluster.Object(), modified).WithWarnings(warnings...)
	})
}

// patchResponse allows a request with the JSON patch from one object to another.
func patchResponse(original, modified map[string]any) admission.Response {
	originalJSON, _ := json.Marshal(original) // encoding decoded JSON cannot fail
	modifiedJSON, _ := json.Marshal(modified)
	return admission.PatchResponseFromRaw(originalJSON, modifiedJSON)
}

// withDefaults returns the cluster of a request with all injections, or unchanged if another manager reconciles it, and warnings about
// replaced elements. It derives the name of a cluster with generateName from requestUID.
func (r *reviewRequest) withDefaults(s Settings, requestUID types.UID) (map[string]any, []string) {
	object := runtime.DeepCopyJSON(r.cluster.Object())
	if generate := nested.String(object, "metadata", "generateName"); r.old.Object() == nil && r.cluster.Name() == "" && generate != "" {
		ensureObject(object, "metadata")["name"] = generatedName(generate, requestUID)
	}
	if r.old.Object() == nil && !r.cluster.HasHashedNames() { // the plan needs the final names
		annotationsOf(object)[raycluster.AnnotationVersion] = s.Version
	}
	p := newPlan(s, raycluster.View(object), r.old)
	if !p.mode.Active() {
		return r.cluster.Object(), nil
	}
	modified := runtime.DeepCopyJSON(object) // the plan refers to object
	p.write(modified, s.Version)
	return modified, p.replacementWarnings()
}

// Admit returns a new cluster as the webhooks admit it, and their warnings, or an error if they reject it. It does not change object.
func Admit(s Settings, object map[string]any) (admitted map[string]any, warnings []string, err error) {
	r := &reviewRequest{cluster: raycluster.View(object)}
	if r.shapeErrors = shapeErrors(r.cluster); len(r.shapeErrors) > 0 {
		return nil, nil, r.shapeErrors.ToAggregate()
	}
	admitted, warnings = r.withDefaults(s, "")
	p := newPlan(s, raycluster.View(admitted), raycluster.Cluster{})
	if violations := p.violations(); len(violations) > 0 {
		return nil, nil, violations.ToAggregate()
	}
	return admitted, append(warnings, p.warnings()...), nil
}

// validator is the validating webhook.
type validator struct{ settings settingsFunc }

// Handle implements admission.Handler.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	rejectInvalid := func(r *reviewRequest) admission.Response {
		if r.storedInvalid {
			return admission.Allowed("")
		}
		return pkgadmission.Invalid(raycluster.GVK.GroupKind(), request.Name, r.shapeErrors)
	}
	return v.settings.handle(ctx, request, rejectInvalid, func(r *reviewRequest, s Settings) admission.Response {
		p := newPlan(s, r.cluster, r.old)
		return pkgadmission.Invalid(raycluster.GVK.GroupKind(), request.Name, p.violations()).WithWarnings(p.warnings()...)
	})
}
