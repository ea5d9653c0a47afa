package raycluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// off is the warning while the component does not run.
const disabled = author.DisabledComponent("the component raycluster is switched off: the RayCluster is stored unchanged, but the operator does not secure it")

// source returns the settings as they are now.
type settingsFunc func(context.Context) (Settings, error)

// asked is a request about a RayCluster.
type reviewRequest struct {
	cluster, old raycluster.Cluster
	// shape are the faults for which nothing else can be said.
	shapeErrors field.ErrorList
	// stored tells that the cluster is stored with these faults: they must not keep finalizers from coming and going.
	storedInvalid bool
}

// read takes the objects out of a request; false for operations that do not concern us.
func parseRequest(request admission.Request) (*reviewRequest, bool, error) {
	if !author.Changes(request) {
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
		if before := shapeErrors(a.old); len(before) > 0 { // then nothing of it is worth keeping, but it exists
			a.storedInvalid = len(a.shapeErrors) > 0 && a.shapeErrors[0].Error() == before[0].Error()
			a.old = raycluster.View(map[string]any{"metadata": a.old.Object()["metadata"]})
		}
	}
	return a, true, nil
}

var errNoObject = errors.New("reading the RayCluster: it is no JSON object")

func parseCluster(raw []byte, namespace string) (raycluster.Cluster, error) {
	c, err := raycluster.Parse(raw)
	if err != nil {
		return c, err
	}
	if c.Object() == nil {
		return c, errNoObject
	}
	if metadata, _ := c.Object()["metadata"].(map[string]any); metadata != nil && namespace != "" {
		metadata["namespace"] = namespace // a new object may leave it to the request
	}
	return c, nil
}

// answer reads a request and the settings. ofShape answers a request of which nothing else can be said.
func (settings settingsFunc) handle(ctx context.Context, request admission.Request, ofShape func(*reviewRequest) admission.Response,
	answer func(*reviewRequest, Settings) admission.Response) admission.Response {
	a, concerned, err := parseRequest(request)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case !concerned || a.old.Terminating(): // its end must not depend on us
		return admission.Allowed("")
	case len(a.shapeErrors) > 0:
		return ofShape(a)
	}
	s, err := settings(ctx)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return answer(a, s)
}

// defaulter answers the mutating webhook.
type defaulter struct{ settings settingsFunc }

// Handle implements admission.Handler.
func (d *defaulter) Handle(ctx context.Context, request admission.Request) admission.Response {
	validationSays := func(*reviewRequest) admission.Response { return admission.Allowed("") }
	return d.settings.handle(ctx, request, validationSays, func(a *reviewRequest, s Settings) admission.Response {
		finished, warnings := a.withDefaults(s, request.UID)
		patch, err := createPatch(a.cluster.Object(), finished)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return author.Patched(patch).WithWarnings(warnings...)
	})
}

// patchBetween leads from one object to another.
func createPatch(before, after map[string]any) ([]jsonpatch.Operation, error) {
	from, err := json.Marshal(before)
	if err != nil {
		return nil, fmt.Errorf("encoding the RayCluster: %w", err)
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("encoding the finished RayCluster: %w", err)
	}
	return jsonpatch.CreatePatch(from, to)
}

// defaulted returns the cluster of a request with everything that belongs into it, and warnings about what that replaces. The uid of the
// request completes a name that is left open.
func (a *reviewRequest) withDefaults(s Settings, request types.UID) (map[string]any, []string) {
	object := runtime.DeepCopyJSON(a.cluster.Object())
	if generate := nested.Text(object, "metadata", "generateName"); a.old.Object() == nil && a.cluster.Name() == "" && generate != "" {
		child(object, "metadata")["name"] = generatedName(generate, request)
	}
	if a.old.Object() == nil && !a.cluster.HasHashedNames() { // the names in the plan are those of the finished object
		annotationsOf(object)[raycluster.AnnotationVersion] = s.Version
	}
	p := newPlan(s, raycluster.View(object), a.old)
	if !p.mode.Active() {
		return a.cluster.Object(), nil
	}
	finished := runtime.DeepCopyJSON(object) // the plan goes by what it was made of
	p.write(finished, s.Version)
	return finished, p.replacementWarnings()
}

// Admit is what the webhooks make of a new cluster: the object with everything that they put into it, and their warnings. An error
// is their refusal. The object is not changed.
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

// validator answers the validating webhook.
type validator struct{ settings settingsFunc }

// Handle implements admission.Handler.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	refuse := func(a *reviewRequest) admission.Response {
		if a.storedInvalid {
			return admission.Allowed("")
		}
		return author.Invalid(raycluster.GVK.GroupKind(), request.Name, a.shapeErrors)
	}
	return v.settings.handle(ctx, request, refuse, func(a *reviewRequest, s Settings) admission.Response {
		p := newPlan(s, a.cluster, a.old)
		return author.Invalid(raycluster.GVK.GroupKind(), request.Name, p.violations()).WithWarnings(p.warnings()...)
	})
}
