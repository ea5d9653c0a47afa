package openshift

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

// Objects are created in namespaces of users, so the permissions cannot be limited to certain namespaces. The verb `bind` permits bindings
// to two roles without holding their permissions. Permissions for Secrets, ConfigMaps and runtimes come from the role of the component. The
// runtimes controller uses this role for NetworkPolicies.

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

// Caches returns the caches that the controllers need in addition to those of the component: metadata of the objects that they create.
func Caches() []managercache.Need {
	return []managercache.Need{
		{Kind: accountKind}, {Kind: bindingKind}, {Kind: delegatorKind}, {Kind: capability.Route},
		{Kind: capability.HTTPRoute}, {Kind: capability.BackendTLSPolicy}, {Kind: ingressKind},
	}
}

// Setup registers the controllers with a manager. It is a modelmesh.Subcontroller. In a single-namespace installation it registers no
// controller, because the objects require cluster-wide permissions.
func Setup(_ context.Context, mgr ctrl.Manager, shared *modelmesh.Dependencies) error {
	if shared.Namespaces.SingleNamespace() {
		return nil
	}
	connections, err := caches.New(mgr, labels.Set{LabelManaged: valueTrue, LabelDashboard: valueTrue}.String(),
		cache.Options{DefaultTransform: caches.StripMetadata})
	if err != nil {
		return err
	}
	meshConfig, gateway := shared.Config.ModelMesh, shared.Config.ModelRegistry.Gateway // models share the Gateway of registries
	base := baseReconciler{
		Lister: shared.Lister, cached: mgr.GetClient(), live: mgr.GetAPIReader(), applier: shared.Applier, recorder: shared.Recorder,
		takeOver: shared.TakeOver, enabled: shared.Namespaces.Enabled,
		exposure: exposure{Exposure: shared.Config.Exposure, gateway: resources.Gateway{Name: gateway.Name, Namespace: gateway.Namespace}},
	}
	n := &namespaceReconciler{baseReconciler: base, connections: connections, monitoring: meshConfig.MonitoringNamespace,
		certificates: &servingcert.Issuer{Cached: base.cached, Live: base.live, Applier: base.applier, Clock: shared.Clock}}
	controllers := controllerBuilder{mgr: mgr, shared: shared}
	if err := controllers.addNamespaceController(n, connections); err != nil || meshConfig.IgnoreInferenceServices {
		return err
	}
	base.applier = shared.RouteApplier
	return controllers.addInferenceServiceController(newInferenceServiceReconciler(base, mgr.GetCache(), shared.Clock))
}

// controllerBuilder builds the controllers with their watches.
type controllerBuilder struct {
	mgr    ctrl.Manager
	shared *modelmesh.Dependencies
}

// addNamespaceController adds the controller of enabled namespaces to the manager.
func (b controllerBuilder) addNamespaceController(r *namespaceReconciler, connections cache.Cache) error {
	enqueue, managed := b.shared.Namespaces.Enqueue(), reconciler.ManagedBy(modelmesh.ComponentName)
	cached, served := b.mgr.GetCache(), b.shared.Served
	labelled, _ := b.shared.Namespaces.Source(&handler.EnqueueRequestForObject{})
	sources := []source.Source{
		labelled, b.shared.Settings.Changes(enqueue), served.EventSource(&metav1.PartialObjectMetadata{}, enqueue),
		source.Kind(connections, client.Object(objectmeta.New(secretKind)), enqueue),
		source.Kind(cached, client.Object(&v1alpha1.Predictor{}), enqueue, modelmesh.CreatedOrDeleted()),
		source.Kind(cached, client.Object(&appsv1.Deployment{}), enqueue, managed),
		source.Kind(cached, client.Object(objectmeta.New(secretKind)), enqueue, b.managedSecrets()),
		source.Kind(cached, client.Object(objectmeta.New(configMapKind)), enqueue, hasName(BundleConfigMap, CAObjectName)),
		source.Kind(cached, client.Object(objectmeta.New(delegatorKind)), handler.EnqueueRequestsFromMapFunc(requestsForBinding), managed),
		source.Kind(cached, client.Object(objectmeta.New(accountKind)), enqueue, managed),
		source.Kind(cached, client.Object(objectmeta.New(bindingKind)), enqueue, managed),
		served.Kind(cached, capability.BackendTLSPolicy, nil, enqueue, managed),
	}
	if !b.shared.Config.ModelMesh.IgnoreInferenceServices {
		sources = append(sources, served.Kind(cached, capability.InferenceService, &v1beta1.InferenceService{}, enqueue, modelmesh.SpecOrAnnotationsChanged()))
	}
	return reconciler.NewController(b.mgr, namespaceController, sources...).Complete(reconciler.ClassifyErrors(r))
}

// addInferenceServiceController adds the controller that publishes models to the manager.
func (b controllerBuilder) addInferenceServiceController(r *inferenceServiceReconciler) error {
	cached, served := b.mgr.GetCache(), b.shared.Served
	enqueueAll := handler.EnqueueRequestsFromMapFunc(b.requestsForInferenceServices)
	enqueueOwner := handler.EnqueueRequestForOwner(b.mgr.GetScheme(), b.mgr.GetRESTMapper(), &v1beta1.InferenceService{}, handler.OnlyControllerOwner())
	labelled, _ := b.shared.Namespaces.Source(enqueueAll)
	c := reconciler.NewController(b.mgr, routeController,
		labelled, b.shared.Settings.Changes(enqueueAll), served.EventSource(&metav1.PartialObjectMetadata{}, enqueueAll),
		source.Kind(cached, client.Object(objectmeta.New(ingressKind)), enqueueOwner),
		source.Kind(cached, client.Object(objectmeta.New(secretKind)), enqueueAll, b.meshCertificates()),
		served.Kind(cached, capability.InferenceService, &v1beta1.InferenceService{}, &handler.EnqueueRequestForObject{}, modelmesh.SpecOrAnnotationsChanged()),
		served.Kind(cached, capability.ServingRuntime, &v1alpha1.ServingRuntime{}, enqueueAll),
		served.Kind(cached, capability.ClusterServingRuntime, &v1alpha1.ClusterServingRuntime{}, enqueueAll),
		served.Kind(cached, capability.Route, nil, enqueueOwner),
		served.Kind(cached, capability.HTTPRoute, nil, enqueueOwner))
	routestatus.Watch(c, served, cached, []schema.GroupVersionKind{capability.Route, capability.HTTPRoute}, enqueueOwner)
	routestatus.Watch(c, served, cached, []schema.GroupVersionKind{capability.BackendTLSPolicy}, enqueueAll, hasName(CAObjectName))
	return c.Complete(reconciler.ClassifyErrors(r))
}

// requestsForInferenceServices returns requests for the InferenceServices of ModelMesh in a Namespace or in the namespace of another
// object. For a ClusterServingRuntime or an object without a name, it returns requests for those of all namespaces.
func (b controllerBuilder) requestsForInferenceServices(ctx context.Context, object client.Object) []reconcile.Request {
	if !b.shared.Served.Current().Has(capability.InferenceService) {
		return nil
	}
	namespace := object.GetNamespace()
	if _, isRuntime := object.(*v1alpha1.ClusterServingRuntime); namespace == "" && !isRuntime {
		namespace = object.GetName()
	}
	var list v1beta1.InferenceServiceList
	if err := b.mgr.GetClient().List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list InferenceServices")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if pkgmodelmesh.IsModelMesh(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// requestsForBinding maps a ClusterRoleBinding to its namespace.
func requestsForBinding(_ context.Context, o client.Object) []reconcile.Request {
	namespace, found := strings.CutSuffix(o.GetName(), delegatorSuffix)
	if !found || namespace == "" {
		return nil
	}
	return []reconcile.Request{modelmesh.RequestFor(namespace)}
}

// managedSecrets matches the Secrets of the namespace controller. It compares names too, because the cache strips labels of foreign
// objects.
func (b controllerBuilder) managedSecrets() predicate.Predicate {
	byName := hasName(authproxy.CookieSecret, authproxy.TLSSecret)
	storage := b.hasConfiguredName(func(s meshsettings.Settings) string { return s.StorageSecretName })
	managed := reconciler.MatchesOldOrNew(func(o client.Object) bool { return isManaged(o) && o.GetLabels()[LabelManaged] == valueTrue })
	return predicate.Or(byName, storage, managed)
}

// meshCertificates matches the Secrets with the certificate of the mesh.
func (b controllerBuilder) meshCertificates() predicate.Predicate {
	return b.hasConfiguredName(func(s meshsettings.Settings) string { return s.TLS.SecretName })
}

// hasConfiguredName matches objects with a name that the administrator's settings contain.
func (b controllerBuilder) hasConfiguredName(nameOf func(meshsettings.Settings) string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		settings, err := b.shared.Settings.Admin(context.Background())
		return err == nil && o.GetName() == nameOf(settings)
	})
}

// hasName matches objects with one of the names.
func hasName(allowed ...string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return slices.Contains(allowed, o.GetName()) })
}
