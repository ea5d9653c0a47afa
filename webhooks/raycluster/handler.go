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

// disabled is the warning while the component is disabled.
const disabled = pkgadmission.DisabledComponent("the component raycluster is disabled: the RayCluster is stored unchanged, but the operator does not secure it: set ENABLE_RAYCLUSTER=true to change this")

// settingsFunc returns the current settings.
type settingsFunc func(context.Context) (Settings, error)

// reviewRequest is the admission request of a RayCluster.
type reviewRequest struct {
	cluster, old raycluster.Cluster
	// shapeErrors are the errors because of which the object cannot be validated further.
	shapeErrors field.ErrorList
	// storedInvalid reports whether the stored cluster has the same errors: they must not block changes of finalizers.
	storedInvalid bool
}

// parseRequest returns the objects of a request, and false for operations that the webhooks ignore.
func parseRequest(request admission.Request) (*reviewRequest, bool, error) {
	if !pkgadmission.IsWrite(request) {
		return nil, false, nil
	}
	a := &reviewRequest{}
	var err error
	if a.cluster, err = parseCluster(request.Object.Raw, request.Namespace); err != nil {
		return nil, false, err
	}
	a.shapeErrors = shapeErrors(a.cluster)
	if request.Operation == admissionv1.Update {
		if a.old, err = parseCluster(request.OldObject.Raw, request.Namespace); err != nil {
			return nil, false, err
		}
		if stored := shapeErrors(a.old); len(stored) > 0 { // the stored object exists, but its injections are unusable
			a.storedInvalid = len(a.shapeErrors) > 0 && a.shapeErrors[0].Error() == stored[0].Error()
			a.old = raycluster.View(map[string]any{"metadata": a.old.Object()["metadata"]})
		}
	}
	return a, true, nil
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
	a, relevant, err := parseRequest(request)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case !relevant || a.old.Terminating(): // deletion must not depend on the webhook
		return admission.Allowed("")
	case len(a.shapeErrors) > 0:
		return onInvalid(a)
	}
	s, err := settings(ctx)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return review(a, s)
}

// defaulter is the mutating webhook.
type defaulter struct{ settings settingsFunc }

// Handle implements admission.Handler.
func (d *defaulter) Handle(ctx context.Context, request admission.Request) admission.Response {
	allow := func(*reviewRequest) admission.Response { return admission.Allowed("") }
	return d.settings.handle(ctx, request, allow, func(a *reviewRequest, s Settings) admission.Response {
		finished, warnings := a.withDefaults(s, request.UID)
		return patchResponse(a.cluster.Object(), finished).WithWarnings(warnings...)
	})
}

// patchResponse allows a request with the JSON patch from one object to another.
func patchResponse(original, modified map[string]any) admission.Response {
	originalJSON, _ := json.Marshal(original) // encoding decoded JSON cannot fail
	modifiedJSON, _ := json.Marshal(modified)
	return admission.PatchResponseFromRaw(originalJSON, modifiedJSON)
}

// withDefaults returns the cluster of a request with all injections, and warnings about replaced elements. A generateName is completed by
// the uid of the request.
func (a *reviewRequest) withDefaults(s Settings, request types.UID) (map[string]any, []string) {
	object := runtime.DeepCopyJSON(a.cluster.Object())
	if generate := nested.String(object, "metadata", "generateName"); a.old.Object() == nil && a.cluster.Name() == "" && generate != "" {
		child(object, "metadata")["name"] = generatedName(generate, request)
	}
	if a.old.Object() == nil && !a.cluster.HasHashedNames() { // the plan needs the final names
		annotationsOf(object)[raycluster.AnnotationVersion] = s.Version
	}
	p := newPlan(s, raycluster.View(object), a.old)
	if !p.mode.Active() {
		return a.cluster.Object(), nil
	}
	finished := runtime.DeepCopyJSON(object) // the plan refers to object
	p.write(finished, s.Version)
	return finished, p.replacementWarnings()
}

// Admit returns a new cluster as the webhooks admit it, and their warnings. The error is their rejection. It does not change object.
func Admit(s Settings, object map[string]any) (admitted map[string]any, warnings []string, err error) {
	a := &reviewRequest{cluster: raycluster.View(object)}
	if a.shapeErrors = shapeErrors(a.cluster); len(a.shapeErrors) > 0 {
		return nil, nil, a.shapeErrors.ToAggregate()
	}
	finished, replaced := a.withDefaults(s, "")
	p := newPlan(s, raycluster.View(finished), raycluster.Cluster{})
	if violations := p.violations(); len(violations) > 0 {
		return nil, nil, violations.ToAggregate()
	}
	return finished, append(replaced, p.warnings()...), nil
}

// validator is the validating webhook.
type validator struct{ settings settingsFunc }

// Handle implements admission.Handler.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	rejectInvalid := func(a *reviewRequest) admission.Response {
		if a.storedInvalid {
			return admission.Allowed("")
		}
		return pkgadmission.Invalid(raycluster.GVK.GroupKind(), request.Name, a.shapeErrors)
	}
	return v.settings.handle(ctx, request, rejectInvalid, func(a *reviewRequest, s Settings) admission.Response {
		p := newPlan(s, a.cluster, a.old)
		return pkgadmission.Invalid(raycluster.GVK.GroupKind(), request.Name, p.violations()).WithWarnings(p.warnings()...)
	})
}
