package modelregistry

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry/conversion"
)

// Paths of the webhooks, to which webhook configurations in clusters refer.
const (
	MutatePath          = "/mutate-modelregistry-opendatahub-io-modelregistry"
	ValidatePath        = "/validate-modelregistry-opendatahub-io-modelregistry"
	ConvertPath         = "/convert"
	ValidateCatalogPath = "/validate-aihub-opendatahub-io-catalog"
)

// Webhook configurations and the CRD into which the CA bundle of the webhook certificate is injected.
const (
	MutatingConfiguration          = "model-registry-operator-mutating-webhook-configuration"
	ValidatingConfiguration        = "model-registry-operator-validating-webhook-configuration"
	CatalogValidatingConfiguration = "catalog-validating-webhook-configuration"
	ConvertedCRD                   = "modelregistries.modelregistry.opendatahub.io"
)

// Settings contains the parameters of the rules.
type Settings struct {
	// Namespace is the only namespace allowed for new registries and a new catalog, or "" for any.
	Namespace string
	// RESTImages are the current and previous default images of the server.
	RESTImages []string
	// HasRoutes is true if the cluster serves Routes. Every registry then has a proxy.
	HasRoutes bool
}

// Source returns the current settings. It returns an error if they cannot be read.
type Source func(context.Context) (Settings, error)

// Register adds the webhooks and the conversion of ModelRegistry to the server of the manager. For a disabled component, the webhooks only
// check the permissions of the author and return a warning. The conversion is always enabled.
func Register(mgr ctrl.Manager, enabled bool, guards pkgadmission.Guards, settings Source) {
	server := mgr.GetWebhookServer()
	server.Register(ConvertPath, converter{})
	kind := v1beta1.GroupVersion.WithKind(v1beta1.Kind)
	const disabledHandler = pkgadmission.DisabledComponent("the component modelregistry is disabled: the ModelRegistry is stored unchanged, but the operator does not reconcile it: set ENABLE_MODELREGISTRY=true to change this")
	validating := disabledHandler.Unless(enabled, &validator{settings, cachedFirst(mgr.GetClient(), newNamespaceFinder(mgr.GetAPIReader(), kind))})
	server.Register(MutatePath, &admission.Webhook{Handler: disabledHandler.Unless(enabled, &defaulter{settings})})
	server.Register(ValidatePath, &admission.Webhook{Handler: guards.Wrap(validating, kind.GroupKind(), referencesOf)})
}

// RegisterCatalog adds the webhook of Catalog to the server of the manager. For a disabled component, the webhook only checks the
// permissions of the author and returns a warning.
func RegisterCatalog(mgr ctrl.Manager, enabled bool, guards pkgadmission.Guards, settings Source) {
	kind := aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind)
	const disabledHandler = pkgadmission.DisabledComponent("the component modelcatalog is disabled: the Catalog is stored unchanged, but the operator does not reconcile it: set ENABLE_MODELCATALOG=true to change this")
	next := disabledHandler.Unless(enabled, &catalogValidator{settings, newNamespaceFinder(mgr.GetAPIReader(), kind)})
	handler := guards.Wrap(next, kind.GroupKind(), catalogReferencesOf)
	mgr.GetWebhookServer().Register(ValidateCatalogPath, &admission.Webhook{Handler: handler})
}

// namespaceFinder returns the namespaces that contain an object of a name.
type namespaceFinder func(ctx context.Context, name string) ([]string, error)

// liveLookupPeriod is the time after a request in which its name is looked up in the API server: the cache may lack the new object.
const liveLookupPeriod = 30 * time.Second

// cachedFirst returns a namespaceFinder of ModelRegistries that calls live only if the cache or a recent request contains the name.
func cachedFirst(cached client.Reader, live namespaceFinder) namespaceFinder {
	recent := expiring.NewExpiring()
	return func(ctx context.Context, name string) ([]string, error) {
		_, isRecent := recent.Get(name)
		recent.Set(name, nil, liveLookupPeriod)
		if isRecent {
			return live(ctx, name)
		}
		list := &v1beta1.ModelRegistryList{}
		if err := cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list.Items, func(m v1beta1.ModelRegistry) bool { return m.Name == name }) {
			return nil, nil
		}
		return live(ctx, name)
	}
}

// newNamespaceFinder returns a namespaceFinder that lists from the API server.
func newNamespaceFinder(reader client.Reader, kind schema.GroupVersionKind) namespaceFinder {
	return func(ctx context.Context, name string) ([]string, error) {
		list := objectmeta.NewList(kind)
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

// defaulter is the mutating webhook of ModelRegistry.
type defaulter struct{ settings Source }

// Handle implements admission.Handler.
func (d *defaulter) Handle(ctx context.Context, request admission.Request) admission.Response {
	return handle(ctx, request, d.settings, func(object, old map[string]any, s Settings) admission.Response {
		setDefaults(object, old, s)
		if old == nil {
			addFinalizer(object)
		}
		raw, err := encode(object)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		return admission.PatchResponseFromRaw(request.Object.Raw, raw)
	})
}

// validator is the validating webhook of ModelRegistry.
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
		if registry.Namespace == "" { // it is optional in the body of a request
			registry.Namespace = request.Namespace
		}
		errs, err := v.validate(ctx, registry, old, s)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, err)
		}
		errs = append(annotationErrors(object), errs...)
		return pkgadmission.Invalid(v1beta1.GroupVersion.WithKind(v1beta1.Kind).GroupKind(), registry.Name, errs).WithWarnings(warnings(registry, old)...)
	})
}

// handle decodes the objects of a request, reads the settings and calls decide. Terminating objects are allowed.
func handle(ctx context.Context, request admission.Request, source Source,
	decide func(object, old map[string]any, s Settings) admission.Response,
) admission.Response {
	if !pkgadmission.IsWrite(request) {
		return admission.Allowed("")
	}
	object, old, err := decode(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if nestedMap(old, "metadata")["deletionTimestamp"] != nil { // of the old object, because clients can set deletionTimestamp in the new object
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
		s.Namespace = "" // stored objects must remain editable after a change of the setting
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

// annotationErrors rejects an invalid conversion annotation, whose fields would be lost.
func annotationErrors(object map[string]any) field.ErrorList {
	if err := conversion.Check(object); err != nil {
		path := field.NewPath("metadata", "annotations").Key(conversion.Annotation)
		text, _ := nestedMap(nestedMap(object, "metadata"), "annotations")[conversion.Annotation].(string)
		return field.ErrorList{field.Invalid(path, text, err.Error()+": send the annotation unchanged")}
	}
	return nil
}

// decode decodes the objects of a request. old is nil on create. Kinds other than ModelRegistry are errors.
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
	// Convert rejects other kinds.
	if _, err := conversion.Convert(object, v1beta1.GroupVersion.String()); err != nil {
		return nil, err
	}
	return object, nil
}

// decodeTyped converts a decoded object of either version to its Go type.
func decodeTyped(object map[string]any) (*v1beta1.ModelRegistry, error) {
	converted, err := conversion.Convert(object, v1beta1.GroupVersion.String())
	if err != nil {
		return nil, err
	}
	out := &v1beta1.ModelRegistry{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(converted, out); err != nil {
		return nil, fmt.Errorf("decoding the ModelRegistry: %w", err)
	}
	return out, nil
}

// settingsUnavailable rejects a request because the settings cannot be read.
func settingsUnavailable(err error) admission.Response {
	return pkgadmission.CheckFailed("the settings of registries and the Catalog", err)
}

// catalogValidator is the validating webhook of Catalog. It validates only new objects.
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
	return pkgadmission.Invalid(aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind).GroupKind(), request.Name, errs)
}

// catalogErrors rejects a new Catalog with an invalid name or namespace.
func catalogErrors(name, namespace string, s Settings) field.ErrorList {
	var errs field.ErrorList
	if name != aihubv1alpha1.CatalogName {
		detail := fmt.Sprintf("catalog resource name must be '%s'", aihubv1alpha1.CatalogName)
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, detail))
	}
	return append(errs, namespaceErrors(namespace, s.Namespace, "the Catalog must be in")...)
}

// duplicateCatalogErrors rejects a Catalog if one exists in another namespace, because both would have the same host and cluster-scoped objects.
func duplicateCatalogErrors(name, namespace string, namespaces []string) field.ErrorList {
	for _, other := range namespaces {
		if other != namespace {
			detail := fmt.Sprintf("a cluster has only one Catalog, which exists in namespace %s: use it, or delete it first", other)
			return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf("%s: %s", name, detail))}
		}
	}
	return nil
}
