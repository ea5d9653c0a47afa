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
const off = author.DisabledComponent("the component raycluster is switched off: the RayCluster is stored unchanged, but the operator does not secure it")

// source returns the settings as they are now.
type source func(context.Context) (Settings, error)

// asked is a request about a RayCluster.
type asked struct {
	cluster, old raycluster.Cluster
	// shape are the faults for which nothing else can be said.
	shape field.ErrorList
	// stored tells that the cluster is stored with these faults: they must not keep finalizers from coming and going.
	stored bool
}

// read takes the objects out of a request; false for operations that do not concern us.
func read(request admission.Request) (*asked, bool, error) {
	if !author.IsWrite(request) {
		return nil, false, nil
	}
	a := &asked{}
	var err error
	if a.cluster, err = object(request.Object.Raw, request.Namespace); err != nil {
		return nil, false, err
	}
	a.shape = shapeErrors(a.cluster)
	if request.Operation == admissionv1.Update {
		if a.old, err = object(request.OldObject.Raw, request.Namespace); err != nil {
			return nil, false, err
		}
		if before := shapeErrors(a.old); len(before) > 0 { // then nothing of it is worth keeping, but it exists
			a.stored = len(a.shape) > 0 && a.shape[0].Error() == before[0].Error()
			a.old = raycluster.View(map[string]any{"metadata": a.old.Object()["metadata"]})
		}
	}
	return a, true, nil
}

var errNoObject = errors.New("reading the RayCluster: it is no JSON object")

func object(raw []byte, namespace string) (raycluster.Cluster, error) {
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
func (settings source) answer(ctx context.Context, request admission.Request, ofShape func(*asked) admission.Response,
	answer func(*asked, Settings) admission.Response) admission.Response {
	a, concerned, err := read(request)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case !concerned || a.old.Deleted(): // its end must not depend on us
		return admission.Allowed("")
	case len(a.shape) > 0:
		return ofShape(a)
	}
	s, err := settings(ctx)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return answer(a, s)
}

// defaulter answers the mutating webhook.
type defaulter struct{ settings source }

// Handle implements admission.Handler.
func (d *defaulter) Handle(ctx context.Context, request admission.Request) admission.Response {
	validationSays := func(*asked) admission.Response { return admission.Allowed("") }
	return d.settings.answer(ctx, request, validationSays, func(a *asked, s Settings) admission.Response {
		finished, warnings := a.defaulted(s, request.UID)
		patch, err := patchBetween(a.cluster.Object(), finished)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return author.PatchResponse(patch).WithWarnings(warnings...)
	})
}

// patchBetween leads from one object to another.
func patchBetween(before, after map[string]any) ([]jsonpatch.Operation, error) {
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
func (a *asked) defaulted(s Settings, request types.UID) (map[string]any, []string) {
	object := runtime.DeepCopyJSON(a.cluster.Object())
	if generate := nested.Text(object, "metadata", "generateName"); a.old.Object() == nil && a.cluster.Name() == "" && generate != "" {
		child(object, "metadata")["name"] = generatedName(generate, request)
	}
	if a.old.Object() == nil && !a.cluster.Hashed() { // the names in the plan are those of the finished object
		annotationsOf(object)[raycluster.AnnotationVersion] = s.Version
	}
	p := planFor(s, raycluster.View(object), a.old)
	if !p.mode.Active() {
		return a.cluster.Object(), nil
	}
	finished := runtime.DeepCopyJSON(object) // the plan goes by what it was made of
	p.write(finished, s.Version)
	return finished, p.replaced()
}

// Admit is what the webhooks make of a new cluster: the object with everything that they put into it, and their warnings. An error
// is their refusal. The object is not changed.
func Admit(s Settings, object map[string]any) (admitted map[string]any, warnings []string, err error) {
	a := &asked{cluster: raycluster.View(object)}
	if a.shape = shapeErrors(a.cluster); len(a.shape) > 0 {
		return nil, nil, a.shape.ToAggregate()
	}
	finished, replaced := a.defaulted(s, "")
	p := planFor(s, raycluster.View(finished), raycluster.Cluster{})
	if violations := p.violations(); len(violations) > 0 {
		return nil, nil, violations.ToAggregate()
	}
	return finished, append(replaced, p.warnings()...), nil
}

// validator answers the validating webhook.
type validator struct{ settings source }

// Handle implements admission.Handler.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	refuse := func(a *asked) admission.Response {
		if a.stored {
			return admission.Allowed("")
		}
		return author.Invalid(raycluster.GVK.GroupKind(), request.Name, a.shape)
	}
	return v.settings.answer(ctx, request, refuse, func(a *asked, s Settings) admission.Response {
		p := planFor(s, a.cluster, a.old)
		return author.Invalid(raycluster.GVK.GroupKind(), request.Name, p.violations()).WithWarnings(p.warnings()...)
	})
}
