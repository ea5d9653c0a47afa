package platform

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

// ComponentName is the name of the component in flags, metrics and folders.
const ComponentName = "platform"

// AIHubFieldOwner is the field manager of the objects of an AIHub, as in the legacy operator.
const AIHubFieldOwner = "aihub"

// ConfigMaps in which the platform reports its version. The one for an AIHub is in its application namespace.
const (
	configMapName      = "odh-mlflowoperator-config"
	aihubConfigMapName = "odh-modelregistry-config"
)

// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators,verbs=list;watch
// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators;mlflowoperators/status,resourceNames=default-mlflowoperator,verbs=patch
// +kubebuilder:rbac:groups=mlflow.opendatahub.io,resources=mlflows,verbs=list;watch
// +kubebuilder:rbac:namespace=system,groups="",resources=configmaps,resourceNames=odh-mlflowoperator-config,verbs=list;watch

// The namespaces of an AIHub are known only at runtime, so permissions are cluster-wide. Those to change or delete objects, and those for
// ConfigMaps and Deployments, are restricted to names.

// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=aihubs,verbs=list;watch
// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=aihubs;aihubs/status,resourceNames=default-aihub,verbs=patch
// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=aihubs/finalizers,resourceNames=default-aihub,verbs=update
// +kubebuilder:rbac:groups=aihub.opendatahub.io,resources=catalogs,verbs=list;watch;create
// +kubebuilder:rbac:groups=aihub.opendatahub.io,resources=catalogs,resourceNames=catalog,verbs=get;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch;create
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=odh-modelregistry-config,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=model-registry-operator-controller-manager;catalog-controller-manager,verbs=list;watch;delete

var (
	mlflowOperatorKind = platformv1alpha1.GroupVersion.WithKind("MLflowOperator")
	mlflowKind         = mlflowv1.GroupVersion.WithKind("MLflow")
	aihubKind          = aihub.Kind
	catalogKind        = aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind)
	namespaceKind      = corev1.SchemeGroupVersion.WithKind("Namespace")
)

// Settings holds the settings of the MLflowOperator controller.
type Settings struct {
	// Namespace is the applications namespace, which contains the ConfigMap of the platform.
	Namespace string
	// MLflowVersion is the oldest MLflow release that this build supports, without a leading "v".
	MLflowVersion string
	// PlatformType is the product that runs this operator, or empty.
	PlatformType string
}

// AIHubSettings holds the settings of the AIHub controller.
type AIHubSettings struct {
	// Namespace is the namespace of the manager.
	Namespace string
	// RegistriesNamespace is the only namespace of registries in the cache, or empty for all.
	RegistriesNamespace string
	// Registry and Catalog are the components that replace the Deployments of the legacy operator.
	Registry, Catalog Component
	// PlatformType is the product that runs this operator, or empty.
	PlatformType string
	Releases     []platformv1alpha1.Release
}

// Deps are the dependencies of the controllers.
type Deps struct {
	Served *capability.Watcher
	Clock  clock.Clock
	// Hub watches the AIHub for webhooks.
	Hub *aihub.Watcher
	// Applier creates and deletes as AIHubFieldOwner.
	Applier *apply.Applier
	// TakeOver is that of controllers/platform/takeover, or nil.
	TakeOver TakeOver
}

// TakeOver is the take-over from the legacy operator of the AIHub.
type TakeOver interface {
	takeover.Interface[*platformv1alpha1.AIHub]
	// Sources returns the sources of the legacy objects.
	Sources(handler.EventHandler) []source.Source
}

// Caches returns the kinds that the manager's cache must contain.
func Caches() []managercache.Need {
	needs := []managercache.Need{{Kind: namespaceKind, IncludeForeign: true}}
	for _, kind := range []schema.GroupVersionKind{mlflowOperatorKind, mlflowKind, aihubKind, catalogKind} {
		needs = append(needs, managercache.Need{Kind: kind, FullObjects: true, IncludeForeign: true})
	}
	return needs
}

// SetupMLflowOperator registers the MLflowOperator controller with a manager.
func SetupMLflowOperator(mgr ctrl.Manager, settings Settings, d Deps) error {
	const name = platformv1alpha1.MLflowOperatorName
	r := &mlflowOperator{
		cached: mgr.GetClient(), apiReader: mgr.GetAPIReader(), clock: d.Clock, served: d.Served.Current, release: settings.MLflowVersion, platformType: settings.PlatformType,
		versionConfigMap: types.NamespacedName{Namespace: settings.Namespace, Name: configMapName},
	}
	var sources []source.Source
	if settings.Namespace != "" {
		versions, err := versionCache(mgr, settings.Namespace, configMapName)
		if err != nil {
			return err
		}
		r.versions = versions
		sources = append(sources, source.Kind(versions, client.Object(&corev1.ConfigMap{}), enqueue(name)))
	}
	sources = append(sources, d.Served.Kind(mgr.GetCache(), mlflowKind, &mlflowv1.MLflow{}, enqueue(name), ignoreUpdates()))
	err := newController(mgr, "mlflowoperator", name, &platformv1alpha1.MLflowOperator{}, d.Served, sources).
		Complete(reconciler.NewWith(reconcilerOptions(mgr), r.logic(), r.conditionAccess()))
	if err != nil {
		return fmt.Errorf("building the controller of MLflowOperator: %w", err)
	}
	return nil
}

// SetupAIHub registers the AIHub controller with a manager.
func SetupAIHub(mgr ctrl.Manager, settings AIHubSettings, d Deps) error {
	const name = platformv1alpha1.AIHubName
	versions, err := versionCache(mgr, "", aihubConfigMapName)
	if err != nil {
		return err
	}
	r := &aiHub{
		settings: settings, cached: mgr.GetClient(), apiReader: mgr.GetAPIReader(), applier: d.Applier, clock: d.Clock,
		served: d.Served.Current, versions: versions, takeOver: takeover.OrNone[*platformv1alpha1.AIHub](d.TakeOver), webhookNamespace: func() string { return webhookNamespace(d.Hub, settings) },
	}
	sources := []source.Source{
		source.Kind(versions, client.Object(&corev1.ConfigMap{}), enqueue(name)),
		d.Served.Kind(mgr.GetCache(), catalogKind, &aihubv1alpha1.Catalog{}, enqueue(name), ignoreUpdates()),
	}
	if d.TakeOver != nil {
		sources = append(sources, d.TakeOver.Sources(enqueue(name))...)
	}
	err = newController(mgr, "aihub", name, &platformv1alpha1.AIHub{}, d.Served, sources).
		WatchesMetadata(&corev1.Namespace{}, enqueue(name), builder.WithPredicates(onlyDeletes())).
		Complete(reconciler.NewWith(reconcilerOptions(mgr), r.logic(), r.conditionAccess()))
	if err != nil {
		return fmt.Errorf("building the controller of AIHub: %w", err)
	}
	return nil
}

func reconcilerOptions(mgr ctrl.Manager) reconciler.Options {
	return reconciler.Options{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(ComponentName), Component: ComponentName}
}

// newController returns the builder of the controller of a singleton. Objects with other names, from older releases, are ignored.
func newController(mgr ctrl.Manager, controller, name string, object client.Object, served *capability.Watcher,
	sources []source.Source,
) *builder.Builder {
	return reconciler.NewController(mgr, controller, sources...).
		For(object, builder.WithPredicates(hasName(name))).
		WatchesRawSource(served.EventSource(object, enqueue(name))) // removing an API deletes its objects without events
}

// webhookNamespace returns the namespace in which webhooks allow a Catalog.
func webhookNamespace(watcher *aihub.Watcher, settings AIHubSettings) string {
	return watcher.Merge(config.ModelRegistry{Namespace: settings.RegistriesNamespace}).Namespace
}

// enqueue enqueues the singleton with the name for any event.
func enqueue(name string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})
}

// hasName accepts events of objects with the name.
func hasName(name string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == name })
}

// ignoreUpdates accepts all events except updates.
func ignoreUpdates() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// onlyDeletes ignores creations and updates.
func onlyDeletes() predicate.Funcs {
	return predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false }}
}
