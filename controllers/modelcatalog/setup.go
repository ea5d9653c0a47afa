package modelcatalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/huggingface"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = resources.ComponentName

// FieldOwner is the field manager of server-side apply. It differs from that of registries, because managed fields identify the component of
// an object.
const FieldOwner = "model-catalog-operator"

// Cluster-wide permissions. Packages namespaced and huggingface have the permissions in the namespace of the Catalog.

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

type (
	// Settings is the configuration of the controller.
	Settings = servers.Settings
	// Deps are the dependencies of the controller.
	Deps = servers.Deps
)

// Caches returns the caches of the controller: all Catalogs, and child objects by their managed label. extraCaches holds other objects.
func Caches(namespace string) []managercache.Need {
	return servers.Caches(namespace,
		managercache.Need{Kind: aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind), FullObjects: true, IncludeForeign: true},
		managercache.Need{Kind: servers.ConfigMap, Namespace: namespace})
}

// TakeOver is the take-over of legacy catalogs, for which no Catalog exists.
type TakeOver interface {
	// Prune is called without desired objects, because it deletes only objects that are never desired. Finalize is also called if the
	// catalog is disabled, with a Catalog without a UID: it then deletes the legacy catalog in the namespace of the Catalog, or all legacy
	// catalogs if the namespace is empty.
	takeover.Interface[*aihubv1alpha1.Catalog]
	// CleanSources removes what the legacy operator added to a user-editable ConfigMap.
	CleanSources(ctx context.Context, m *corev1.ConfigMap)
	// Namespaces returns the namespaces of legacy catalogs.
	Namespaces(ctx context.Context) ([]string, error)
}

// noTakeOver takes over nothing.
type noTakeOver struct{ none }

type none = takeover.None[*aihubv1alpha1.Catalog]

func (noTakeOver) CleanSources(context.Context, *corev1.ConfigMap) {}
func (noTakeOver) Namespaces(context.Context) ([]string, error)    { return nil, nil }

// Setup registers the controller of Catalogs and bootstrap with a manager. takeOver is that of controllers/modelcatalog/takeover, or nil.
func Setup(ctx context.Context, mgr ctrl.Manager, d Deps, takeOver TakeOver) error {
	takeOver = cmp.Or[TakeOver](takeOver, noTakeOver{})
	extra, err := newExtraCaches(mgr, d.Settings.Namespace)
	if err != nil {
		return err
	}
	admins := newAdminGroupsWatcher(ctx, d.Dynamic, d.Served, d.Clock, mgr.GetLogger())
	proxy := newClusterProxyWatcher(d.Dynamic, d.Clock, mgr.GetLogger())
	apiKeys := huggingface.NewWatcher(d.Dynamic, d.Settings.Namespace, d.Clock, mgr.GetLogger().WithName("hugging-face"))
	d.Served.OnChange(ctx, func(s capability.Set) { proxy.SetServed(s.Has(capability.OpenShiftProxy)) })
	reader := extra.delegatingClient(mgr.GetClient())
	r := &catalogReconciler{
		Reconciler: servers.NewReconciler(reader, mgr.GetCache(), mgr.GetAPIReader(), d.Applier(reader), d.Clock),
		settings:   d.Settings, aihub: d.Hub, extraCaches: extra, admins: admins, proxy: proxy, apiKeys: apiKeys, takeOver: takeOver,
		served: d.Served.Current, domain: d.Domain,
	}
	if err := r.watch(mgr, d.Served, d.Domain); err != nil {
		return fmt.Errorf("building the Catalog controller: %w", err)
	}
	for _, watcher := range []manager.Runnable{admins, proxy, apiKeys} {
		if err := mgr.Add(watcher); err != nil {
			return fmt.Errorf("adding the watches: %w", err)
		}
	}
	return mgr.Add(&bootstrap{settings: d.Settings, client: mgr.GetClient(), apiReader: mgr.GetAPIReader(), applier: r.Applier,
		takeOver: takeOver, clock: d.Clock, log: mgr.GetLogger().WithName(ComponentName)})
}

func (r *catalogReconciler) watch(mgr ctrl.Manager, served *capability.Watcher, domain *clusterdomain.Watcher) error {
	base := reconciler.New(reconciler.Options{
		Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(ComponentName), Component: ComponentName,
	}, reconciler.Logic[*aihubv1alpha1.Catalog]{
		Phases: r.phases(), Finalizer: aihubv1alpha1.Finalizer, Finalize: r.finalize, OnDeleted: r.forget,
	})
	catalog := &aihubv1alpha1.Catalog{}
	// enqueue enqueues all Catalogs; normally there is one.
	enqueue := servers.Enqueue(r.Cached, &aihubv1alpha1.CatalogList{}, false, func(*aihubv1alpha1.Catalog, client.Object) bool { return true })
	b := servers.OwnChildren(reconciler.NewController(mgr, ComponentName, r.extraCaches.eventSources(enqueue)...).
		For(catalog, builder.WithPredicates(reconciler.Changed())), &rbacv1.Role{}, &rbacv1.RoleBinding{}).
		Watches(&aihubv1alpha1.Catalog{}, enqueue, builder.WithPredicates(servers.ExistenceChanged())).
		WatchesMetadata(&corev1.ConfigMap{}, enqueue, builder.WithPredicates(reconciler.ManagedBy(ComponentName))).
		Watches(&discoveryv1.EndpointSlice{}, enqueue, builder.WithPredicates(reconciler.ManagedBy(ComponentName))).
		WatchesMetadata(&rbacv1.ClusterRoleBinding{}, enqueue, builder.WithPredicates(catalogPredicate())).
		WatchesRawSource(served.EventSource(catalog, enqueue)).
		WatchesRawSource(domain.EventSource(catalog, enqueue)).
		WatchesRawSource(r.aihub.EventSource(catalog, enqueue)).
		WatchesRawSource(r.admins.EventSource(catalog, enqueue)).
		WatchesRawSource(r.proxy.EventSource(catalog, enqueue)).
		WatchesRawSource(r.apiKeys.EventSource(catalog, enqueue))
	for _, kind := range servers.OptionalKinds {
		b.WatchesRawSource(served.Kind(mgr.GetCache(), kind, nil, enqueue, catalogPredicate()))
	}
	routestatus.Watch(b, served, mgr.GetCache(), routestatus.Kinds, enqueue, catalogPredicate())
	return b.Complete(base)
}

// catalogPredicate matches objects by the labels of the catalog, or by name if their labels were changed. The caches also contain objects of
// other components.
func catalogPredicate() predicate.Predicate {
	managedNames := sets.New(resources.DelegatorBinding, resources.Name, resources.RouteName, resources.GrantName, resources.AuthorityName)
	return predicate.Or(reconciler.ManagedBy(ComponentName), predicate.NewPredicateFuncs(func(o client.Object) bool { return managedNames.Has(o.GetName()) }))
}

// extraCaches holds Secrets and ConfigMaps that may lack the labels by which the cache of the manager selects.
type extraCaches struct {
	// secrets holds the metadata of the three Secrets of the catalog, by name, because RBAC may allow no others.
	secrets map[string]cache.Cache
	// labelledConfigMaps holds the ConfigMaps with SourceLabel.
	labelledConfigMaps cache.Cache
	apiReader          client.Reader
	// contentProblems holds the results of checkContent, by the objectVersion of the ConfigMap.
	contentProblems *lru.Cache
}

func newExtraCaches(mgr ctrl.Manager, namespace string) (*extraCaches, error) {
	secrets, err := servers.NamedCaches(mgr, namespace, apply.Transform(FieldOwner),
		resources.DatabaseName, resources.CertificateSecret, resources.DatabaseCertificate)
	if err != nil {
		return nil, err
	}
	labelled, err := caches.New(mgr, resources.SourceLabel+"="+resources.SourceLabelValue,
		cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultTransform: trimContent})
	return &extraCaches{secrets: secrets, labelledConfigMaps: labelled, apiReader: mgr.GetAPIReader(), contentProblems: lru.New(maxContentProblems)}, err
}

// delegatingClient returns a client that reads the metadata of the Secrets from their caches.
func (e *extraCaches) delegatingClient(main client.Client) client.Client {
	return &caches.DelegatingClient{Client: main, Route: func(key client.ObjectKey, object client.Object) client.Reader {
		if _, metadata := object.(*metav1.PartialObjectMetadata); metadata && object.GetObjectKind().GroupVersionKind() == servers.Secret {
			if c, found := e.secrets[key.Name]; found {
				return c
			}
		}
		return nil
	}}
}

// eventSources returns sources of the events of all caches.
func (e *extraCaches) eventSources(h handler.EventHandler) []source.Source {
	all := []source.Source{source.Kind(e.labelledConfigMaps, client.Object(&corev1.ConfigMap{}), h)}
	for _, c := range e.secrets {
		all = append(all, source.Kind(c, client.Object(objectmeta.New(servers.Secret)), h))
	}
	return all
}

// authName is the name of the Auth singleton.
const authName = "auth"

// adminGroups returns the groups of administrators in an Auth, or nil if the object or field is missing or has another type.
func adminGroups(auth *unstructured.Unstructured) []string {
	if auth == nil {
		return nil
	}
	groups, _, _ := unstructured.NestedStringSlice(auth.Object, "spec", "adminGroups") // nil with an error
	return slices.DeleteFunc(groups, func(name string) bool { return name == "" })
}

// newAdminGroupsWatcher watches the groups of administrators while Auth is served.
func newAdminGroupsWatcher(ctx context.Context, dyn dynamic.Interface, served *capability.Watcher, clk clock.Clock, log logr.Logger) *singleton.Value[[]string] {
	resource := capability.PlatformAuth.GroupVersion().WithResource("auths")
	groups := singleton.NewValue(singleton.Options{
		Client: dyn.Resource(resource), Resource: resource.GroupResource(), Name: authName, Clock: clk, Log: log.WithName("auth"),
	}, singleton.Unknown, adminGroups)
	served.OnChange(ctx, func(s capability.Set) { groups.SetServed(s.Has(capability.PlatformAuth)) })
	return groups
}

// clusterProxyName is the name of the Proxy singleton of OpenShift.
const clusterProxyName = "cluster"

// newClusterProxyWatcher watches the Proxy of the cluster. Without permission, the value is empty, as on clusters without a Proxy. If the
// permission is removed later, the last value is kept, because a change would replace the pod.
func newClusterProxyWatcher(dyn dynamic.Interface, clk clock.Clock, log logr.Logger) *singleton.Value[resources.EgressProxy] {
	resource := capability.OpenShiftProxy.GroupVersion().WithResource("proxies")
	return singleton.NewValue(singleton.Options{
		Client: dyn.Resource(resource), Resource: resource.GroupResource(), Name: clusterProxyName, Clock: clk, Log: log.WithName("proxy"),
	}, singleton.AbsentUnlessKnown, resources.ClusterProxy)
}
