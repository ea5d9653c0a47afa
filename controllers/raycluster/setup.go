package raycluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/certificates"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster/raysettings"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = raycluster.ComponentName

// FieldOwner equals the field manager of the CodeFlare operator: apply then removes fields that only the CodeFlare operator set.
const FieldOwner = raycluster.FieldOwner

// Objects are created in the namespaces of users, so the permissions cannot be limited to some namespaces. Kinds that are only listed and
// watched have resourceNames.

// +kubebuilder:rbac:groups=ray.io,resources=rayclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=ray.io,resources=rayclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets;services;serviceaccounts;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=cert-manager.io,resources=certificates,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes/custom-host,verbs=create;update
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes;backendtlspolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames="system:auth-delegator",verbs=bind
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=kuberay-operator,verbs=list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=kuberay-mutating-webhook-configuration,verbs=list;watch
// +kubebuilder:rbac:groups=dscinitialization.opendatahub.io,resources=dscinitializations,resourceNames=default-dsci,verbs=list;watch

// The permissions for ConfigMaps also cover the ConfigMap with the settings in the namespace of the manager.

// builtInKinds are the namespaced kinds of child objects that every Kubernetes cluster serves.
var builtInKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("Service"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	networkingv1.SchemeGroupVersion.WithKind("Ingress"), networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
}

// optionalKinds are the kinds of child objects that may be installed or removed at run time.
var optionalKinds = []schema.GroupVersionKind{capability.Route, capability.HTTPRoute, capability.BackendTLSPolicy, capability.Certificate}

// prunedKinds returns the kinds that are pruned.
func prunedKinds(served capability.Set) []schema.GroupVersionKind {
	return slices.DeleteFunc(slices.Concat(builtInKinds, optionalKinds), func(kind schema.GroupVersionKind) bool {
		return slices.Contains(optionalKinds, kind) && !served.Has(kind)
	})
}

// LegacyKinds returns the kinds of the child objects that a legacy operator may have left.
func LegacyKinds(served capability.Set) []schema.GroupVersionKind {
	return append(prunedKinds(served), bindingKind)
}

// Caches returns the kinds in the manager's cache: whole RayClusters and routes, and metadata of child objects. Pods have their own cache.
func Caches() []managercache.Need {
	needs := []managercache.Need{{Kind: raycluster.GVK, IncludeForeign: true}, {Kind: bindingKind}}
	for _, kind := range slices.Concat(builtInKinds, optionalKinds) {
		needs = append(needs, managercache.Need{Kind: kind})
	}
	return needs
}

// Deps are the dependencies of the component.
type Deps struct {
	// OperatorNamespace is the namespace of the manager.
	OperatorNamespace string
	Settings          *raysettings.Source
	Served            *capability.Watcher
	Domain            *clusterdomain.Watcher
	Dynamic           dynamic.Interface
	Clock             clock.Clock
	// TakeOver is the result of controllers/raycluster/takeover.New, or nil.
	TakeOver takeover.Interface[*unstructured.Unstructured]
	Applier  *apply.Applier
}

// Setup registers the controller with a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, d Deps) error {
	if _, err := d.Settings.Get(ctx); err != nil {
		return err
	}
	podCache, err := pods.NewCache(ctx, mgr)
	if err != nil {
		return err
	}
	kubeRay := newKubeRayLocator(d.Dynamic, d.Clock, mgr.GetLogger().WithName("kuberay"), d.OperatorNamespace)
	d.Served.OnChange(ctx, func(s capability.Set) { kubeRay.initialization.SetServed(s.Has(capability.DSCInitialization)) })
	r := &clusterReconciler{
		client: mgr.GetClient(), cacheReader: mgr.GetCache(), apiReader: mgr.GetAPIReader(), pods: podCache, applier: d.Applier,
		settings: d.Settings.Get, served: d.Served.Current, domain: d.Domain.Domain, kubeRayNamespaces: kubeRay.Namespaces,
		recorder: mgr.GetEventRecorder(ComponentName), clock: d.Clock, takeOver: takeover.OrNone(d.TakeOver),
	}
	r.certificates = &certificates.Reconciler{
		Cached: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Applier: d.Applier, Clock: d.Clock, Recorder: r.recorder,
	}
	all := r.enqueueAll()
	sources := []source.Source{
		d.Settings.EventSource(emptyRayCluster(), all), d.Served.EventSource(emptyRayCluster(), all), d.Domain.EventSource(emptyRayCluster(), all),
	}
	for _, value := range kubeRay.sources {
		sources = append(sources, value.EventSource(emptyRayCluster(), all))
	}
	if err := r.watch(mgr, podCache, d.Served, sources); err != nil {
		return fmt.Errorf("building the RayCluster controller: %w", err)
	}
	return mgr.Add(kubeRay)
}

// watch builds the controller.
func (r *clusterReconciler) watch(mgr ctrl.Manager, podCache cache.Cache, served *capability.Watcher, sources []source.Source) error {
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), emptyRayCluster(), handler.OnlyControllerOwner())
	b := reconciler.NewController(mgr, ComponentName, sources...).
		For(emptyRayCluster(), builder.WithPredicates(clusterChanged())).
		WatchesMetadata(&rbacv1.ClusterRoleBinding{}, handler.EnqueueRequestsFromMapFunc(bindingToCluster)).
		WatchesRawSource(source.Kind(podCache, client.Object(&corev1.Pod{}), handler.EnqueueRequestsFromMapFunc(pods.ToCluster), pods.Changed()))
	for _, kind := range builtInKinds {
		b.WatchesMetadata(objectmeta.New(kind), owned)
	}
	for _, kind := range optionalKinds {
		b.WatchesRawSource(served.Kind(mgr.GetCache(), kind, nil, owned))
	}
	routestatus.Watch(b, served, mgr.GetCache(), routestatus.Kinds, owned)
	return b.Complete(reconciler.ClassifyErrors(r))
}

// clusterChanged ignores updates of the status, which KubeRay sends often.
func clusterChanged() predicate.Predicate {
	return predicate.Or(reconciler.Changed(), predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}})
}

// bindingToCluster maps a ClusterRoleBinding to its RayCluster.
func bindingToCluster(_ context.Context, object client.Object) []reconcile.Request {
	name := types.NamespacedName{Namespace: object.GetLabels()[raycluster.LabelClusterNamespace], Name: object.GetLabels()[raycluster.LabelClusterName]}
	if name.Namespace == "" || name.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: name}}
}

// enqueueAll maps any event to all RayClusters.
func (r *clusterReconciler) enqueueAll() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		list, err := r.list(ctx)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to enqueue all RayClusters")
			return nil
		}
		requests := make([]reconcile.Request, 0, len(list.Items))
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	})
}
