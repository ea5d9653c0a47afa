package modelregistry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
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
	const off = author.Idle("the component modelregistry is switched off: the ModelRegistry is stored unchanged, but the operator does not reconcile it")
	var mutating, validating admission.Handler = off, off
	if enabled {
		mutating, validating = &defaulter{settings}, &validator{settings, finder(mgr.GetAPIReader(), kind)}
	}
	server.Register(MutatePath, &admission.Webhook{Handler: mutating})
	server.Register(ValidatePath, &admission.Webhook{Handler: guards.Before(validating, kind.GroupKind(), usesOf)})
}

// RegisterCatalog adds the webhook of Catalog to the server of the manager. While the component is switched off only the author is
// judged, with a warning.
func RegisterCatalog(mgr ctrl.Manager, enabled bool, guards author.Guards, settings Source) {
	kind := aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind)
	var next admission.Handler = author.Idle("the component modelcatalog is switched off: the Catalog is stored unchanged, but the operator does not reconcile it")
	if enabled {
		next = &catalogValidator{settings, finder(mgr.GetAPIReader(), kind)}
	}
	handler := guards.Before(next, kind.GroupKind(), catalogUsesOf)
	mgr.GetWebhookServer().Register(ValidateCatalogPath, &admission.Webhook{Handler: handler})
}

// find returns the namespaces that hold an object of the name.
type find func(ctx context.Context, name string) ([]string, error)

// finder asks the API server and not the cache, which may not have heard of an object that was created a moment ago.
func finder(reader client.Reader, kind schema.GroupVersionKind) find {
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
