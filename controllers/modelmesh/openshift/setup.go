package openshift

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
)

// What is made stands in the namespaces of users, so the rights cannot be limited to some. `bind` lets us grant two roles without
// holding what they grant. Secrets, ConfigMaps and runtimes are among the rights of the component. NetworkPolicies are written by the
// controller of runtimes, which has this role wherever it makes any.

// +kubebuilder:rbac:groups=serving.kserve.io,resources=inferenceservices,verbs=patch
// +kubebuilder:rbac:groups=serving.kserve.io,resources=inferenceservices/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=list;watch;create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=prometheus-ns-access,verbs=get;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames="system:auth-delegator";prometheus-ns-access,verbs=bind
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes;backendtlspolicies,verbs=get;list;watch;create;patch;delete

const (
	namespaceController = "modelmesh-companion"
	routeController     = "modelmesh-routes"
)

// Caches says what is held in memory beside what the component holds: of what was made here the metadata.
func Caches() []component.CacheNeed {
	return []component.CacheNeed{
		{Kind: accountKind}, {Kind: bindingKind}, {Kind: delegatorKind}, {Kind: capability.Route},
		{Kind: capability.HTTPRoute}, {Kind: capability.BackendTLSPolicy}, {Kind: ingressKind},
	}
}

// Setup registers the controllers with a manager. It is a modelmesh.Part. Where one namespace alone is served there are none: what
// they make needs rights on the cluster.
func Setup(ctx context.Context, mgr ctrl.Manager, shared *modelmesh.Shared) error {
	if shared.Namespaces.OnlyOwn() {
		return nil
	}
	connections, err := component.NewSelectorCache(mgr, capability.MetadataOf(secretKind), cache.ByObject{
		Label: labels.SelectorFromSet(labels.Set{LabelManaged: valueTrue, LabelDashboard: valueTrue}),
	}, component.StripMetadata)
	if err != nil {
		return err
	}
	own, gateway := shared.Config.ModelMesh, shared.Config.ModelRegistry.Gateway // models are behind the same Gateway as registries
	base := baseReconciler{
		Catalog: shared.Catalog, cached: mgr.GetClient(), live: mgr.GetAPIReader(), applier: shared.Applier, recorder: shared.Recorder,
		enabled:  shared.Namespaces.Enabled,
		exposure: exposure{Exposure: shared.Config.Exposure, gateway: resources.Gateway{Name: gateway.Name, Namespace: gateway.Namespace}},
	}
	n := &namespaceReconciler{baseReconciler: base, connections: connections, monitoring: own.MonitoringNamespace, clock: shared.Clock}
	w := controllerBuilder{mgr: mgr, shared: shared}
	if err := w.startNamespaceController(ctx, n, connections); err != nil || own.IgnoreInferenceServices {
		return err
	}
	base.applier = routeApplier(shared.Applier)
	return w.startInferenceServiceController(ctx, newInferenceServiceReconciler(base, mgr.GetCache(), shared.Clock))
}

// keepingHosts is the applier of Routes: what the former companion wrote is not taken from it, because the host is among that. The
// platform chose it when the Route was made, and clients know it.
func routeApplier(a *apply.Applier) *apply.Applier {
	options := a.Options
	options.LegacyManagers = nil
	return apply.New(options)
}

// watching joins the controllers to what they depend on.
type controllerBuilder struct {
	mgr    ctrl.Manager
	shared *modelmesh.Shared
}

// start builds a controller that watches some sources.
func (w controllerBuilder) newController(name string, r reconcile.Reconciler, sources []source.Source) (controller.Controller, error) {
	c, err := controller.New(name, w.mgr, reconciler.ControllerOptionsFor(r))
	if err == nil {
		err = watchAll(c, sources)
	}
	if err != nil {
		return nil, fmt.Errorf("building the controller %s: %w", name, err)
	}
	return c, nil
}

// namespaces starts the controller of what stands around served namespaces.
func (w controllerBuilder) startNamespaceController(ctx context.Context, r *namespaceReconciler, connections cache.Cache) error {
	every, theirs, made := w.shared.Namespaces.EnqueueNamed(), modelmesh.EnqueueNamespace(), apply.ManagedByPredicate(modelmesh.ComponentName)
	held, served := w.mgr.GetCache(), w.shared.Served
	labelled, _ := w.shared.Namespaces.Source(&handler.EnqueueRequestForObject{})
	c, err := w.newController(namespaceController, r, []source.Source{
		labelled, w.shared.Settings.Changes(every), served.Changes(&metav1.PartialObjectMetadata{}, every),
		source.Kind(connections, client.Object(capability.MetadataOf(secretKind)), theirs),
		source.Kind(held, client.Object(&v1alpha1.Predictor{}), theirs, modelmesh.ComesOrGoes()),
		source.Kind(held, client.Object(&appsv1.Deployment{}), theirs, made),
		source.Kind(held, client.Object(capability.MetadataOf(secretKind)), theirs, w.managedSecrets()),
		source.Kind(held, client.Object(capability.MetadataOf(configMapKind)), theirs, hasName(BundleConfigMap, CAObjectName)),
		source.Kind(held, client.Object(capability.MetadataOf(delegatorKind)), handler.EnqueueRequestsFromMapFunc(requestsForBinding), made),
		source.Kind(held, client.Object(capability.MetadataOf(accountKind)), theirs, made),
		source.Kind(held, client.Object(capability.MetadataOf(bindingKind)), theirs, made),
	})
	if err != nil {
		return err
	}
	served.WatchMetadata(ctx, c, capability.BackendTLSPolicy, theirs, made)
	if !w.shared.Config.ModelMesh.IgnoreInferenceServices {
		served.Watch(ctx, c, capability.InferenceService, func() source.Source {
			return source.Kind(held, client.Object(&v1beta1.InferenceService{}), theirs, modelmesh.SpecOrAnnotations())
		})
	}
	return nil
}

// publications starts the controller of what publishes models.
func (w controllerBuilder) startInferenceServiceController(ctx context.Context, r *inferenceServiceReconciler) error {
	held, served := w.mgr.GetCache(), w.shared.Served
	all := handler.EnqueueRequestsFromMapFunc(w.requestsForInferenceServices)
	owned := handler.EnqueueRequestForOwner(w.mgr.GetScheme(), w.mgr.GetRESTMapper(), &v1beta1.InferenceService{}, handler.OnlyControllerOwner())
	labelled, _ := w.shared.Namespaces.Source(all)
	c, err := w.newController(routeController, r, []source.Source{
		labelled, w.shared.Settings.Changes(all), served.Changes(&metav1.PartialObjectMetadata{}, all),
		source.Kind(held, client.Object(capability.MetadataOf(ingressKind)), owned),
		source.Kind(held, client.Object(capability.MetadataOf(secretKind)), all, w.meshCertificates()),
	})
	if err != nil {
		return err
	}
	served.Watch(ctx, c, capability.InferenceService, func() source.Source {
		return source.Kind(held, client.Object(&v1beta1.InferenceService{}), &handler.EnqueueRequestForObject{}, modelmesh.SpecOrAnnotations())
	})
	served.Watch(ctx, c, capability.ServingRuntime, func() source.Source {
		return source.Kind(held, client.Object(&v1alpha1.ServingRuntime{}), all)
	})
	served.Watch(ctx, c, capability.ClusterServingRuntime, func() source.Source {
		return source.Kind(held, client.Object(&v1alpha1.ClusterServingRuntime{}), all)
	})
	served.WatchMetadata(ctx, c, capability.Route, owned)
	served.WatchMetadata(ctx, c, capability.HTTPRoute, owned)
	routestatus.Watch(ctx, served, held, c, []schema.GroupVersionKind{capability.Route, capability.HTTPRoute}, owned)
	routestatus.Watch(ctx, served, held, c, []schema.GroupVersionKind{capability.BackendTLSPolicy}, all, hasName(CAObjectName))
	return nil
}

func watchAll(c controller.Controller, sources []source.Source) error {
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return err
		}
	}
	return nil
}

// models maps an object to the InferenceServices for the mesh that are in its namespace, or are so if it is a namespace itself, and
// one without a name to all of them.
func (w controllerBuilder) requestsForInferenceServices(ctx context.Context, object client.Object) []reconcile.Request {
	if !w.shared.Served.Current().Has(capability.InferenceService) {
		return nil
	}
	namespace := object.GetNamespace()
	if _, cluster := object.(*v1alpha1.ClusterServingRuntime); namespace == "" && !cluster {
		namespace = object.GetName()
	}
	var list v1beta1.InferenceServiceList
	if err := w.mgr.GetClient().List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing InferenceServices")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if isModelMesh(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// byBinding maps a ClusterRoleBinding to the namespace that it was made for.
func requestsForBinding(_ context.Context, o client.Object) []reconcile.Request {
	namespace, is := strings.CutSuffix(o.GetName(), delegatorSuffix)
	if !is || namespace == "" {
		return nil
	}
	return []reconcile.Request{modelmesh.RequestFor(namespace)}
}

// concerning admits the Secrets that are made here: by name, since the cache keeps no labels of foreign objects.
func (w controllerBuilder) managedSecrets() predicate.Predicate {
	mine := hasName(authproxy.CookieSecret, authproxy.TLSSecret)
	entries := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return w.hasConfiguredName(o, func(s meshsettings.Settings) string { return s.StorageSecretName })
	})
	marked := apply.MatchesOldOrNew(func(o client.Object) bool { return isManaged(o) && o.GetLabels()[LabelManaged] == valueTrue })
	return predicate.Or(mine, entries, marked)
}

// ofTheMesh admits the Secrets with the certificate of the mesh.
func (w controllerBuilder) meshCertificates() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return w.hasConfiguredName(o, func(s meshsettings.Settings) string { return s.TLS.SecretName })
	})
}

// isNamed tells whether an object has a name that the settings of the administrator give.
func (w controllerBuilder) hasConfiguredName(o client.Object, which func(meshsettings.Settings) string) bool {
	settings, err := w.shared.Settings.Admin(context.Background())
	return err == nil && o.GetName() == which(settings)
}

// named admits objects by their names.
func hasName(all ...string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return slices.Contains(all, o.GetName())
	})
}
