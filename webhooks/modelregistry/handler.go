package modelregistry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry/conversion"
)

// defaulter answers the mutating webhook of ModelRegistry.
type defaulter struct{ settings Source }

// Handle implements admission.Handler.
func (d *defaulter) Handle(ctx context.Context, request admission.Request) admission.Response {
	if !author.Changes(request) {
		return admission.Allowed("")
	}
	object, old, err := decode(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if leaving(old) {
		return admission.Allowed("")
	}
	settings, err := d.settings(ctx)
	if err != nil {
		return unset(err)
	}
	setDefaults(object, old, settings)
	changed, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

// validator answers the validating webhook of ModelRegistry.
type validator struct {
	settings Source
	others   find
}

// Handle implements admission.Handler.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	if !author.Changes(request) {
		return admission.Allowed("")
	}
	object, oldObject, err := decode(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if leaving(oldObject) {
		return admission.Allowed("")
	}
	settings, err := v.settings(ctx)
	if err != nil {
		return unset(err)
	}
	registry, err := typed(object)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var old *v1beta1.ModelRegistry
	if oldObject != nil {
		if old, err = typed(oldObject); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	if registry.Namespace == "" { // in a request the URL may say it alone
		registry.Namespace = request.Namespace
	}
	errs, err := v.judge(ctx, registry, old, settings)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	errs = append(keptErrors(object), errs...)
	return author.Invalid(v1beta1.GroupVersion.WithKind(v1beta1.Kind).GroupKind(), registry.Name, errs).WithWarnings(warnings(registry, old)...)
}

func (v *validator) judge(ctx context.Context, registry, old *v1beta1.ModelRegistry, s Settings) (field.ErrorList, error) {
	if old != nil {
		s.Namespace = "" // it may have changed since, and what is stored elsewhere must be able to change too
	}
	errs := append(nameErrors(registry, old), Validate(registry, s)...)
	errs = append(errs, patternErrors(registry, old)...)
	if old != nil {
		return errs, nil
	}
	namespaces, err := v.others(ctx, registry.Name)
	if err != nil {
		return nil, fmt.Errorf("looking for other registries named %s: %w", registry.Name, err)
	}
	return append(errs, taken(registry, namespaces)...), nil
}

// keptErrors refuses an annotation of conversion that cannot be read: what it keeps would be lost.
func keptErrors(object map[string]any) field.ErrorList {
	if err := conversion.Check(object); err != nil {
		path := field.NewPath("metadata", "annotations").Key(conversion.Annotation)
		text, _ := block(block(object, "metadata"), "annotations")[conversion.Annotation].(string)
		return field.ErrorList{field.Invalid(path, text, err.Error()+": leave the annotation as it is served")}
	}
	return nil
}

// decode reads the objects of a request; old is nil for a new one. Anything but a ModelRegistry is an error.
func decode(request admission.Request) (object, old map[string]any, err error) {
	if object, err = decodeRaw(request.Object.Raw); err != nil {
		return nil, nil, err
	}
	if request.Operation == admissionv1.Update {
		old, err = decodeRaw(request.OldObject.Raw)
	}
	return object, old, err
}

func decodeRaw(raw []byte) (map[string]any, error) {
	var object map[string]any
	if err := kjson.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decoding the ModelRegistry: %w", err)
	}
	// The conversion knows what a ModelRegistry is.
	if _, err := conversion.Convert(object, v1beta1.GroupVersion.String()); err != nil {
		return nil, err
	}
	return object, nil
}

// typed reads a decoded object of either version.
func typed(object map[string]any) (*v1beta1.ModelRegistry, error) {
	converted, err := conversion.Convert(object, v1beta1.GroupVersion.String())
	if err != nil {
		return nil, err
	}
	registry := &v1beta1.ModelRegistry{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(converted, registry); err != nil {
		return nil, fmt.Errorf("decoding the ModelRegistry: %w", err)
	}
	return registry, nil
}

// leaving reports whether an object is being deleted, by what is stored: a new one can say anything.
func leaving(old map[string]any) bool {
	return block(old, "metadata")["deletionTimestamp"] != nil
}

// unset refuses while the settings cannot be read.
func unset(err error) admission.Response {
	return author.Undecided("the settings of the component modelregistry", err)
}
