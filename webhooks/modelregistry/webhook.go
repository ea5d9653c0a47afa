package modelregistry

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry/conversion"
)

// The paths of the webhooks. Configurations in clusters call them.
const (
	MutatePath          = "/mutate-modelregistry-opendatahub-io-modelregistry"
	ValidatePath        = "/validate-modelregistry-opendatahub-io-modelregistry"
	ConvertPath         = "/convert"
	ValidateCatalogPath = "/validate-aihub-opendatahub-io-catalog"
)

// The objects that lead to the webhooks and are shipped with the program; each must know the CA of the webhook certificate.
const (
	MutatingConfiguration          = "model-registry-operator-mutating-webhook-configuration"
	ValidatingConfiguration        = "model-registry-operator-validating-webhook-configuration"
	CatalogValidatingConfiguration = "catalog-validating-webhook-configuration"
	ConvertedCRD                   = "modelregistries.modelregistry.opendatahub.io"
)

// Settings are what the rules need to know beside the objects.
type Settings struct {
	// Namespace is the only one in which registries and the catalog may live; empty for any.
	Namespace string
	// RESTImages are the images that registries without one run, or once ran.
	RESTImages []string
	// OpenShift says that the cluster serves Routes: a registry always has a proxy there.
	OpenShift bool
}

// Source returns the settings. They may have to be read first, so it can fail. It is called with every request.
type Source func(context.Context) (Settings, error)

// Register adds the webhooks and the conversion of ModelRegistry to the server of the manager. While the component is
// switched off only the author is judged, with a warning; conversion continues.
func Register(mgr ctrl.Manager, enabled bool, guards author.Guards, settings Source) {
	server := mgr.GetWebhookServer()
	server.Register(ConvertPath, converter{})
	kind := v1beta1.GroupVersion.WithKind(v1beta1.Kind)
	const off = author.DisabledComponent("the component modelregistry is switched off: the ModelRegistry is stored unchanged, but the operator does not reconcile it")
	var mutating, validating admission.Handler = off, off
	if enabled {
		mutating, validating = &defaulter{settings}, &validator{settings, newNamespaceFinder(mgr.GetAPIReader(), kind)}
	}
	server.Register(MutatePath, &admission.Webhook{Handler: mutating})
	server.Register(ValidatePath, &admission.Webhook{Handler: guards.Before(validating, kind.GroupKind(), referencesOf)})
}

// RegisterCatalog adds the webhook of Catalog to the server of the manager. While the component is switched off only the author is
// judged, with a warning.
func RegisterCatalog(mgr ctrl.Manager, enabled bool, guards author.Guards, settings Source) {
	kind := aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind)
	var next admission.Handler = author.DisabledComponent("the component modelcatalog is switched off: the Catalog is stored unchanged, but the operator does not reconcile it")
	if enabled {
		next = &catalogValidator{settings, newNamespaceFinder(mgr.GetAPIReader(), kind)}
	}
	handler := guards.Before(next, kind.GroupKind(), catalogReferencesOf)
	mgr.GetWebhookServer().Register(ValidateCatalogPath, &admission.Webhook{Handler: handler})
}

// find returns the namespaces that hold an object of the name.
type namespaceFinder func(ctx context.Context, name string) ([]string, error)

// finder asks the API server and not the cache, which may not have heard of an object that was created a moment ago.
func newNamespaceFinder(reader client.Reader, kind schema.GroupVersionKind) namespaceFinder {
	return func(ctx context.Context, name string) ([]string, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := reader.List(ctx, list, client.MatchingFields{"metadata.name": name}); err != nil {
			return nil, err
		}
		var namespaces []string
		for i := range list.Items {
			namespaces = append(namespaces, list.Items[i].Namespace)
		}
		return namespaces, nil
	}
}

// defaulter answers the mutating webhook of ModelRegistry.
type defaulter struct{ settings Source }

// Handle implements admission.Handler.
func (d *defaulter) Handle(ctx context.Context, request admission.Request) admission.Response {
	return handle(ctx, request, d.settings, func(object, old map[string]any, s Settings) admission.Response {
		setDefaults(object, old, s)
		changed, err := encode(object)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(request.Object.Raw, changed)
	})
}

// validator answers the validating webhook of ModelRegistry.
type validator struct {
	settings       Source
	findNamespaces namespaceFinder
}

// Handle implements admission.Handler.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	return handle(ctx, request, v.settings, func(object, oldObject map[string]any, s Settings) admission.Response {
		registry, err := decodeTyped(object)
		var old *v1beta1.ModelRegistry
		if err == nil && oldObject != nil {
			old, err = decodeTyped(oldObject)
		}
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if registry.Namespace == "" { // in a request the URL may say it alone
			registry.Namespace = request.Namespace
		}
		errs, err := v.validate(ctx, registry, old, s)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		errs = append(annotationErrors(object), errs...)
		return author.Invalid(v1beta1.GroupVersion.WithKind(v1beta1.Kind).GroupKind(), registry.Name, errs).WithWarnings(warnings(registry, old)...)
	})
}

// read decodes what a request changes, and reads the settings, before it is decided. Objects that are being deleted pass.
func handle(ctx context.Context, request admission.Request, source Source,
	decide func(object, old map[string]any, s Settings) admission.Response,
) admission.Response {
	if !author.Changes(request) {
		return admission.Allowed("")
	}
	object, old, err := decode(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if nestedMap(old, "metadata")["deletionTimestamp"] != nil { // by what is stored: a new object can say anything
		return admission.Allowed("")
	}
	settings, err := source(ctx)
	if err != nil {
		return settingsUnavailable(err)
	}
	return decide(object, old, settings)
}

func (v *validator) validate(ctx context.Context, registry, old *v1beta1.ModelRegistry, s Settings) (field.ErrorList, error) {
	if old != nil {
		s.Namespace = "" // it may have changed since, and what is stored elsewhere must be able to change too
	}
	errs := append(nameErrors(registry, old), Validate(registry, s)...)
	errs = append(errs, patternErrors(registry, old)...)
	if old != nil {
		return errs, nil
	}
	namespaces, err := v.findNamespaces(ctx, registry.Name)
	if err != nil {
		return nil, fmt.Errorf("looking for other registries named %s: %w", registry.Name, err)
	}
	return append(errs, duplicateNameErrors(registry, namespaces)...), nil
}

// keptErrors refuses an annotation of conversion that cannot be read: what it keeps would be lost.
func annotationErrors(object map[string]any) field.ErrorList {
	if err := conversion.Check(object); err != nil {
		path := field.NewPath("metadata", "annotations").Key(conversion.Annotation)
		text, _ := nestedMap(nestedMap(object, "metadata"), "annotations")[conversion.Annotation].(string)
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
func decodeTyped(object map[string]any) (*v1beta1.ModelRegistry, error) {
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

// unset refuses while the settings cannot be read.
func settingsUnavailable(err error) admission.Response {
	return author.CheckFailed("the settings of the component modelregistry", err)
}

// catalogValidator answers the validating webhook of Catalog. It looks at new ones only.
type catalogValidator struct {
	settings       Source
	findNamespaces namespaceFinder
}

// Handle implements admission.Handler.
func (v *catalogValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	settings, err := v.settings(ctx)
	if err != nil {
		return settingsUnavailable(err)
	}
	errs := catalogErrors(request.Name, request.Namespace, settings)
	if settings.Namespace == "" && len(errs) == 0 {
		namespaces, err := v.findNamespaces(ctx, request.Name)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("looking for another Catalog: %w", err))
		}
		errs = duplicateCatalogErrors(request.Name, request.Namespace, namespaces)
	}
	return author.Invalid(aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind).GroupKind(), request.Name, errs)
}

// catalogErrors refuses a new Catalog of another name, or in another namespace than the configured one.
func catalogErrors(name, namespace string, s Settings) field.ErrorList {
	var errs field.ErrorList
	if name != aihubv1alpha1.CatalogName {
		detail := fmt.Sprintf("catalog resource name must be '%s'", aihubv1alpha1.CatalogName)
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, detail))
	}
	return append(errs, namespaceErrors(namespace, s.Namespace, "the catalog lives in")...)
}

// secondCatalog refuses a Catalog beside one in another namespace: they would share a host and cluster-wide rights.
func duplicateCatalogErrors(name, namespace string, namespaces []string) field.ErrorList {
	for _, other := range namespaces {
		if other != namespace {
			detail := fmt.Sprintf("there is one Catalog in a cluster, and it exists in namespace %s already: use it, or delete it first", other)
			return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf("%s: %s", name, detail))}
		}
	}
	return nil
}
