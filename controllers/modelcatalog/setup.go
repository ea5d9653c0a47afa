package modelcatalog

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/huggingface"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "modelcatalog"

// FieldOwner is the manager of every field we set. Registries have another one, so that it shows whose an object is.
const FieldOwner = "model-catalog-operator"

// LegacyManager is the name under which the older operator updated objects: that of its program.
const LegacyManager = "manager"

// LastApplied is the annotation in which the older operator kept what it had written last, passwords included.
const LastApplied = "banzaicloud.com/last-applied"

// The rights that concern the whole cluster; those beside a Catalog are in the packages beside and huggingface.

// +kubebuilder:rbac:groups=aihub.opendatahub.io,resources=catalogs,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=aihub.opendatahub.io,resources=catalogs,resourceNames=catalog,verbs=delete
// +kubebuilder:rbac:groups=aihub.opendatahub.io,resources=catalogs/status,verbs=patch
// +kubebuilder:rbac:groups=aihub.opendatahub.io,resources=catalogs/finalizers,verbs=update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,verbs=list;watch;create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,resourceNames=model-catalog-auth-delegator,verbs=get;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames="system:auth-delegator",verbs=bind
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,resourceNames=model-catalog,verbs=get;patch;delete
// +kubebuilder:rbac:groups=services.platform.opendatahub.io,resources=auths,resourceNames=auth,verbs=list;watch
// +kubebuilder:rbac:groups=components.platform.opendatahub.io,resources=aihubs,resourceNames=default-aihub,verbs=get
// +kubebuilder:rbac:groups=config.openshift.io,resources=proxies,resourceNames=cluster,verbs=list;watch
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=list;watch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=list;watch;create
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=referencegrants;backendtlspolicies,verbs=list;watch

// Settings are what the manager's configuration says about the catalog.
type Settings struct {
	config.ModelRegistry
	// Authors says what no author may let pods use.
	Authors admission.Rules
}

// Environment is what the controller needs from the program. All of it is called when the controller starts.
type Environment struct {
	// Served says which optional kinds there are.
	Served func() *capability.Watcher
	// Domain knows the domain of the cluster's routers.
	Domain func() *clusterdomain.Watcher
	// Hub knows the decisions of the platform; nil where the component platform is off.
	Hub func() *aihub.Watcher
	// Applier makes one that reads through the given client.
	Applier func(ctrl.Manager, client.Client) *apply.Applier
	Clock   func() clock.Clock
}

// Caches says what is held in memory: children by our label. What belongs to users is held in narrow caches.
func Caches(namespace string) []component.CacheNeed {
	return append(registry.Caches(namespace),
		component.CacheNeed{Kind: aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind), FullObjects: true, IncludeForeign: true},
		component.CacheNeed{Kind: registry.ConfigMap, Namespace: namespace})
}

// Setup registers the controller of Catalogs with a manager, and what happens once at its start.
func Setup(settings Settings, env Environment) func(context.Context, ctrl.Manager) error {
	return func(ctx context.Context, mgr ctrl.Manager) error {
		side, err := newExtraCaches(mgr, settings.Namespace)
		if err != nil {
			return err
		}
		dyn, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return fmt.Errorf("building the client for single objects of the platform: %w", err)
		}
		served, domain, hub := env.Served(), env.Domain(), env.Hub()
		admins := newAdminGroupsWatcher(ctx, dyn, served, env.Clock(), mgr.GetLogger())
		proxy := newClusterProxyWatcher(dyn, env.Clock(), mgr.GetLogger())
		keys := huggingface.NewWatcher(dyn, settings.Namespace, env.Clock(), mgr.GetLogger().WithName("hugging-face"))
		served.Follow(ctx, func(s capability.Set) { proxy.SetServed(s.Has(capability.OpenShiftProxy)) })
		reader := side.delegatingClient(mgr.GetClient())
		r := &catalogReconciler{
			settings: settings, aihub: hub, cached: reader, apiReader: mgr.GetAPIReader(), fullObjects: mgr.GetCache(), extraCaches: side, applier: env.Applier(mgr, reader),
			admins: admins, proxy: proxy, keys: keys, served: served.Current, domain: domain, clock: env.Clock(),
			references: reference.NewTracker(reader, mgr.GetAPIReader()),
		}
		r.certificates = registry.NewCertificates(reader, r.apiReader, r.applier, r.clock)
		c, err := r.watch(mgr, served, domain)
		if err != nil {
			return fmt.Errorf("building the Catalog controller: %w", err)
		}
		for _, kind := range registry.OptionalKinds {
			served.WatchMetadata(ctx, c, kind, r.enqueueAllCatalogs(), catalogPredicate())
		}
		routestatus.Watch(ctx, served, mgr.GetCache(), c, routestatus.Kinds, r.enqueueAllCatalogs(), catalogPredicate())
		for _, followed := range []manager.Runnable{admins, proxy, keys} {
			if err := mgr.Add(followed); err != nil {
				return fmt.Errorf("adding what is followed: %w", err)
			}
		}
		return mgr.Add(&bootstrap{settings: settings, client: mgr.GetClient(), apiReader: mgr.GetAPIReader(), applier: r.applier,
			recorder: mgr.GetEventRecorder(ComponentName), clock: env.Clock(), log: mgr.GetLogger().WithName(ComponentName)})
	}
}

// watch builds the controller on all kinds that are always there.
func (r *catalogReconciler) watch(mgr ctrl.Manager, served *capability.Watcher, domain *clusterdomain.Watcher) (controller.Controller, error) {
	shell := reconciler.New(reconciler.Options{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(ComponentName), Component: ComponentName,
	}, reconciler.Logic[*aihubv1alpha1.Catalog]{
		Phases: r.phases(), Finalizer: aihubv1alpha1.Finalizer, Finalize: r.finalize, OnDeleted: r.forget,
	})
	every, catalog := r.enqueueAllCatalogs(), &aihubv1alpha1.Catalog{}
	b := registry.OwnServerChildren(ctrl.NewControllerManagedBy(mgr).Named(ComponentName).WithOptions(reconciler.ControllerOptions()).
		For(catalog, builder.WithPredicates(reconciler.Changed()))).
		Watches(&aihubv1alpha1.Catalog{}, every, builder.WithPredicates(createDeletePredicate())).
		WatchesMetadata(&corev1.ConfigMap{}, every, builder.WithPredicates(apply.ManagedByPredicate(ComponentName))).
		Watches(&discoveryv1.EndpointSlice{}, every, builder.WithPredicates(apply.ManagedByPredicate(ComponentName))).
		WatchesMetadata(&rbacv1.ClusterRoleBinding{}, every, builder.WithPredicates(catalogPredicate())).
		WatchesRawSource(served.Changes(catalog, every)).
		WatchesRawSource(domain.Changes(catalog, every)).
		WatchesRawSource(r.aihub.Changes(catalog, every)).
		WatchesRawSource(r.admins.Changes(catalog, every)).
		WatchesRawSource(r.proxy.Changes(catalog, every)).
		WatchesRawSource(r.keys.Changes(catalog, every))
	for _, s := range r.extraCaches.eventSources(every) {
		b.WatchesRawSource(s)
	}
	return b.Build(shell)
}

// everyCatalog maps whatever happened to all Catalogs, of which there is one as a rule.
func (r *catalogReconciler) enqueueAllCatalogs() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		list := &aihubv1alpha1.CatalogList{}
		if err := r.cached.List(ctx, list); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing Catalogs")
			return nil
		}
		requests := make([]reconcile.Request, 0, len(list.Items))
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	})
}

// comesAndGoes admits what decides which Catalog is in charge.
func createDeletePredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}

// ofCatalog admits what bears the labels of the catalog or one of its names, whatever its labels have become: other components
// keep objects of the same kinds in the cache.
func catalogPredicate() predicate.Predicate {
	own := sets.New(resources.DelegatorBinding, resources.Name, resources.RouteName, resources.GrantName, resources.AuthorityName)
	return predicate.Or(apply.ManagedByPredicate(ComponentName), predicate.NewPredicateFuncs(func(o client.Object) bool { return own.Has(o.GetName()) }))
}
