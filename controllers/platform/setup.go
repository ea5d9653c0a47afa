package platform

import (
	"context"
	"fmt"
	"time"

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
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// ComponentName is the name of the component in flags, metrics and folders.
const ComponentName = "platform"

// HubFieldOwner is the manager of what is made for an AIHub, as in the original.
const AIHubFieldOwner = "aihub"

// The ConfigMaps in which the platform reports its version, that of an AIHub in the application namespace of that.
const configMapName, aihubConfigMapName = "odh-mlflowoperator-config", "odh-modelregistry-config"

// soon is the pause for what is a matter of moments.
const shortRequeue = time.Second

// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators,verbs=list;watch
// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=mlflowoperators;mlflowoperators/status,resourceNames=default-mlflowoperator,verbs=patch
// +kubebuilder:rbac:groups=mlflow.opendatahub.io,resources=mlflows,verbs=list;watch
// +kubebuilder:rbac:namespace=system,groups="",resources=configmaps,resourceNames=odh-mlflowoperator-config,verbs=list;watch

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
	mlflowOperatorKind = platformv1alpha1.GroupVersion.WithKind("MLflowOperator")
	mlflowKind         = mlflowv1.GroupVersion.WithKind("MLflow")
	aihubKind          = aihub.Kind
	catalogKind        = aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind)
	namespaceKind      = corev1.SchemeGroupVersion.WithKind("Namespace")
)

// Settings are what the manager's configuration says.
type Settings struct {
	// Namespace is the applications namespace, in which the platform leaves its ConfigMap.
	Namespace string
	// MLflowVersion is the release of MLflow that this build is made for, without a leading "v".
	MLflowVersion string
	// PlatformType is the product that runs this operator; empty if it is not known.
	PlatformType string
}

// HubSettings are what the program knows about registries and the catalog.
type AIHubSettings struct {
	// Namespace of the manager.
	Namespace string
	// RegistriesNamespace is the only one that this process holds in memory; empty is all.
	RegistriesNamespace string
	// Registry and Catalog are the components that do the work.
	Registry, Catalog Program
	// PlatformType is the product that runs this operator; empty if it is not known.
	PlatformType string
	// Releases of this build.
	Releases []platformv1alpha1.Release
}

// HubEnvironment is what the controller of AIHub needs from the program. All of it is called when the controller starts.
type AIHubEnvironment struct {
	Served func() *capability.Watcher
	Clock  func() clock.Clock
	// Hub is what webhooks learn the decisions of the AIHub from.
	Watcher func() *aihub.Watcher
	// Applier creates and deletes as HubFieldOwner.
	Applier func(ctrl.Manager) *apply.Applier
}

// Optional are the kinds that the component looks at while they are served.
func OptionalKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{mlflowOperatorKind, mlflowKind, aihubKind, catalogKind}
}

// Parts are what the component consists of: one for each resource of the platform, which waits until that is served. They
// bear the name of the component, since they are switched as one.
func Components(mlflowOperator, hub func(context.Context, ctrl.Manager) error) []component.Component {
	return []component.Component{
		{Name: ComponentName, Requires: []schema.GroupVersionKind{mlflowOperatorKind}, Controllers: mlflowOperator},
		{Name: ComponentName, Requires: []schema.GroupVersionKind{aihubKind}, Controllers: hub},
	}
}

// Caches says what is held in memory: the few objects of cluster scope.
func Caches() []component.CacheNeed {
	needs := []component.CacheNeed{{Kind: namespaceKind, IncludeForeign: true}}
	for _, kind := range OptionalKinds() {
		needs = append(needs, component.CacheNeed{Kind: kind, FullObjects: true, IncludeForeign: true})
	}
	return needs
}

// SetupMLflowOperator registers the controller of MLflowOperator with a manager.
func SetupMLflowOperator(settings Settings, served func() *capability.Watcher, clk func() clock.Clock) func(context.Context, ctrl.Manager) error {
	const name = platformv1alpha1.MLflowOperatorName
	return func(ctx context.Context, mgr ctrl.Manager) error {
		served := served()
		r := &mlflowOperator{
			cached: mgr.GetClient(), apiReader: mgr.GetAPIReader(), clock: clk(), served: served.Current, release: settings.MLflowVersion, platformType: settings.PlatformType,
			versionKey: types.NamespacedName{Namespace: settings.Namespace, Name: configMapName},
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
		c, err := newController(mgr, "mlflowoperator", name, &platformv1alpha1.MLflowOperator{}, served, sources).
			Build(reconciler.NewWith(reconcilerOptions(mgr), r.logic(), r.conditionAccess()))
		if err != nil {
			return fmt.Errorf("building the controller of MLflowOperator: %w", err)
		}
		served.Watch(ctx, c, mlflowKind, func() source.Source {
			return source.Kind(mgr.GetCache(), client.Object(&mlflowv1.MLflow{}), enqueue(name), createDeletePredicate())
		})
		return nil
	}
}

// SetupHub registers the controller of AIHub with a manager.
func SetupAIHub(settings AIHubSettings, env AIHubEnvironment) func(context.Context, ctrl.Manager) error {
	const name = platformv1alpha1.AIHubName
	return func(ctx context.Context, mgr ctrl.Manager) error {
		served, hub := env.Served(), env.Watcher()
		former, sources, err := newLegacyDeployments(mgr, settings.Namespace, enqueue(name))
		if err != nil {
			return err
		}
		versions, err := versionCache(mgr, "", aihubConfigMapName)
		if err != nil {
			return err
		}
		r := &aiHub{
			settings: settings, cached: mgr.GetClient(), apiReader: mgr.GetAPIReader(), applier: env.Applier(mgr), clock: env.Clock(),
			served: served.Current, versions: versions, legacy: former, webhookNamespace: func() string { return webhookNamespace(hub, settings) },
		}
		sources = append(sources, source.Kind(versions, client.Object(&corev1.ConfigMap{}), enqueue(name)))
		c, err := newController(mgr, "aihub", name, &platformv1alpha1.AIHub{}, served, sources).
			WatchesMetadata(&corev1.Namespace{}, enqueue(name), builder.WithPredicates(deletePredicate())).
			Build(reconciler.NewWith(reconcilerOptions(mgr), r.logic(), r.conditionAccess()))
		if err != nil {
			return fmt.Errorf("building the controller of AIHub: %w", err)
		}
		served.Watch(ctx, c, catalogKind, func() source.Source {
			return source.Kind(mgr.GetCache(), client.Object(&aihubv1alpha1.Catalog{}), enqueue(name), createDeletePredicate())
		})
		return nil
	}
}

func reconcilerOptions(mgr ctrl.Manager) reconciler.Options {
	return reconciler.Options{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(ComponentName), Component: ComponentName}
}

// controllerOf begins the controller of the one object of a kind that counts. Older releases knew other names, which schemas refuse now.
func newController(mgr ctrl.Manager, controller, name string, object client.Object, served *capability.Watcher,
	sources []source.Source,
) *builder.Builder {
	b := ctrl.NewControllerManagedBy(mgr).Named(controller).WithOptions(reconciler.ControllerOptions()).
		For(object, builder.WithPredicates(hasName(name))).
		WatchesRawSource(served.Changes(object, enqueue(name))) // objects of an API that goes are gone without events
	for _, s := range sources {
		b.WatchesRawSource(s)
	}
	return b
}

// decidedNamespace is where webhooks let a Catalog be made.
func webhookNamespace(hub *aihub.Watcher, settings AIHubSettings) string {
	return hub.ApplyTo(config.ModelRegistry{Namespace: settings.RegistriesNamespace}).Namespace
}

// to maps whatever happened to the one object of a kind that counts.
func enqueue(name string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	})
}

// named admits the object of a name.
func hasName(name string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == name })
}

// comesAndGoes admits what changes the number of objects.
func createDeletePredicate() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// goes admits the end of objects.
func deletePredicate() predicate.Funcs {
	p := createDeletePredicate()
	p.CreateFunc = func(event.CreateEvent) bool { return false }
	return p
}
