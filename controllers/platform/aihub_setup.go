package platform

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// HubFieldOwner is the manager of what is made for an AIHub, as in the original.
const HubFieldOwner = "aihub"

// hubConfigMapName is the ConfigMap in which the platform reports its version, in the application namespace of the AIHub.
const hubConfigMapName = "odh-modelregistry-config"

// soon is the pause for what is a matter of moments.
const soon = time.Second

// The namespaces of an AIHub are known at run time only, so what is in them is held narrow by names.

// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=aihubs,verbs=list;watch
// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=aihubs;aihubs/status,resourceNames=default-aihub,verbs=patch
// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=aihubs/finalizers,resourceNames=default-aihub,verbs=update
// +kubebuilder:rbac:groups=aihub.opendatahub.io,resources=catalogs,verbs=list;watch;create
// +kubebuilder:rbac:groups=aihub.opendatahub.io,resources=catalogs,resourceNames=catalog,verbs=get;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch;create
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=odh-modelregistry-config,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=model-registry-operator-controller-manager;catalog-controller-manager,verbs=list;watch;delete

var (
	hubKind       = aihub.Kind
	catalogKind   = aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind)
	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
)

// HubSettings are what the program knows about registries and the catalog.
type HubSettings struct {
	// RegistriesNamespace is the only one that this process holds in memory; empty is all.
	RegistriesNamespace string
	// Registry and Catalog are the components that do the work.
	Registry, Catalog Program
	// Releases of this build.
	Releases []platformv1alpha1.Release
}

// HubEnvironment is what the controller of AIHub needs from the program. All of it is called when the controller starts.
type HubEnvironment struct {
	Served func() *capability.Watcher
	Clock  func() clock.Clock
	// Hub is what webhooks learn the decisions of the AIHub from.
	Hub func() *aihub.Watcher
	// Applier creates and deletes as HubFieldOwner.
	Applier func(ctrl.Manager) *apply.Applier
}

// SetupHub registers the controller of AIHub with a manager.
func SetupHub(settings HubSettings, env HubEnvironment) func(context.Context, ctrl.Manager) error {
	return func(ctx context.Context, mgr ctrl.Manager) error {
		served, hub := env.Served(), env.Hub()
		former, sources, err := newFormerPrograms(mgr, toHub())
		if err != nil {
			return err
		}
		versions, err := versionCache(mgr, "", hubConfigMapName)
		if err != nil {
			return err
		}
		sources = append(sources, source.Kind(versions, client.Object(&corev1.ConfigMap{}), toHub()),
			// Objects of an API that goes are gone without events.
			served.Changes(&platformv1alpha1.AIHub{}, toHub()))
		r := &aiHub{
			settings: settings, cached: mgr.GetClient(), live: mgr.GetAPIReader(), applier: env.Applier(mgr), clock: env.Clock(), served: served.Current,
			versions: versions, former: former, decided: func() string { return decidedNamespace(hub, settings) },
		}
		shell := reconciler.NewWith(reconciler.Options{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(ComponentName), Component: ComponentName,
		}, r.logic(), r.access())
		b := ctrl.NewControllerManagedBy(mgr).Named("aihub").WithOptions(reconciler.ControllerOptions()).
			For(&platformv1alpha1.AIHub{}, builder.WithPredicates(isHub())).
			WatchesMetadata(&corev1.Namespace{}, toHub(), builder.WithPredicates(goes()))
		for _, s := range sources {
			b.WatchesRawSource(s)
		}
		c, err := b.Build(shell)
		if err != nil {
			return fmt.Errorf("building the controller of AIHub: %w", err)
		}
		served.Watch(ctx, c, catalogKind, func() source.Source {
			return source.Kind(mgr.GetCache(), client.Object(&aihubv1alpha1.Catalog{}), toHub(), comesAndGoes())
		})
		return nil
	}
}

// decidedNamespace is where webhooks let a Catalog be made.
func decidedNamespace(hub *aihub.Watcher, settings HubSettings) string {
	return hub.Over(config.ModelRegistry{Namespace: settings.RegistriesNamespace}).Namespace
}

// catalogIn is a Catalog that leaves everything to its defaults.
func catalogIn(place types.NamespacedName) runtime.ApplyConfiguration {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind))
	u.SetName(place.Name)
	u.SetNamespace(place.Namespace)
	return client.ApplyConfigurationFromUnstructured(u)
}

// toHub maps whatever happened to the one AIHub.
func toHub() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: platformv1alpha1.AIHubName}}}
	})
}

// isHub admits the one AIHub that counts. Older releases knew another name, which its schema refuses now.
func isHub() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == platformv1alpha1.AIHubName })
}

// goes admits the end of objects.
func goes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// notServed reports that there can be no object, since there is no such API.
func notServed(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
