package runtimes

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
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
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

var (
	namespaceKind  = corev1.SchemeGroupVersion.WithKind("Namespace")
	serviceKind    = corev1.SchemeGroupVersion.WithKind("Service")
	configMapKind  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	secretKind     = corev1.SchemeGroupVersion.WithKind("Secret")
	pvcKind        = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	policyKind     = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
	autoscalerKind = autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
)

// RBAC for child objects. It is a separate Role, which a single-namespace installation grants only in its namespace. OpenShift
// requires the permission to update finalizers of an owner to set blockOwnerDeletion: the Service owns the ServiceMonitor, and in a
// single-namespace installation the operator's Deployment owns the Service.

// +kubebuilder:rbac:groups="",resources=services;secrets;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch

// Caches returns the cache requirements: metadata of managed objects; full Deployments, because their replicas are read; metadata of
// all Secrets and ConfigMaps, including those of users. An empty namespace means all, and only then NetworkPolicies are managed.
func Caches(namespace string) []managercache.Need {
	needs := []managercache.Need{
		{Kind: deploymentKind, Namespace: namespace, FullObjects: true},
		{Kind: serviceKind, Namespace: namespace},
		{Kind: autoscalerKind, Namespace: namespace},
		{Kind: secretKind, Namespace: namespace, IncludeForeign: true},
		{Kind: configMapKind, Namespace: namespace, IncludeForeign: true},
		{Kind: capability.ServiceMonitor},
	}
	if namespace == "" {
		needs = append(needs, managercache.Need{Kind: policyKind})
	}
	return needs
}

// Setup registers the runtimes controller. It is a modelmesh.Subcontroller.
func Setup(_ context.Context, mgr ctrl.Manager, dependencies *modelmesh.Dependencies) error {
	claims, err := dependencies.Namespaces.NewCache(mgr, "", caches.StripMetadata)
	if err != nil {
		return err
	}
	pods, err := newPodCache(mgr, dependencies.Namespaces)
	if err != nil {
		return err
	}
	r := newReconciler(&runtimeReconciler{
		Lister: dependencies.Lister, admissionRules: dependencies.Config.AdmissionRules, clock: dependencies.Clock, recorder: dependencies.Recorder,
		live: mgr.GetAPIReader(), claims: claims, pods: pods, applier: dependencies.Applier, pool: dependencies.Pool, etcdWatcher: dependencies.Events, takeOver: dependencies.TakeOver,
	})
	if err := r.watch(mgr, claims, pods, dependencies.Served, dependencies.Settings); err != nil {
		return fmt.Errorf("building the controller of runtimes: %w", err)
	}
	return nil
}

// watch adds the controller with its watches to the manager.
func (r *runtimeReconciler) watch(mgr ctrl.Manager, claims, pods cache.Cache, served *capability.Watcher, settings *meshsettings.Source) error {
	whenMetadataChanged := builder.WithPredicates(metadataChanged())
	controllerBuilder := reconciler.NewController(mgr, modelmesh.ComponentName).
		Watches(&v1alpha1.Predictor{}, r.Namespaces.EnqueueEnabled(), builder.WithPredicates(modelmesh.SpecOrAnnotationsChanged())).
		Watches(&appsv1.Deployment{}, r.Namespaces.Enqueue(), builder.WithPredicates(predicate.Or(metadataChanged(), availabilityChanged()))).
		WatchesRawSource(source.Kind(pods, client.Object(&corev1.Pod{}), r.Namespaces.Enqueue(), podProblemChanged())).
		WatchesMetadata(&corev1.Service{}, r.Namespaces.Enqueue(), whenMetadataChanged).
		WatchesMetadata(&autoscalingv2.HorizontalPodAutoscaler{}, r.Namespaces.Enqueue(), whenMetadataChanged).
		WatchesMetadata(&corev1.ConfigMap{}, r.Namespaces.EnqueueEnabled(), builder.WithPredicates(metadataChanged(), predicate.NewPredicateFuncs(mayBeReferenced))).
		WatchesMetadata(&corev1.Secret{}, r.enqueueForSecret()).
		WatchesRawSource(source.Kind(claims, client.Object(objectmeta.New(pvcKind)), r.Namespaces.EnqueueEnabled(), modelmesh.CreatedOrDeleted())).
		WatchesRawSource(settings.Changes(r.Namespaces.Enqueue())).
		WatchesRawSource(served.EventSource(&corev1.Namespace{}, r.Namespaces.Enqueue())).
		WatchesRawSource(r.enqueueOperatorNamespace())
	if namespaces, watched := r.Namespaces.Source(&handler.EnqueueRequestForObject{}); watched {
		controllerBuilder.WatchesRawSource(namespaces).WatchesMetadata(&networkingv1.NetworkPolicy{}, r.Namespaces.Enqueue(), whenMetadataChanged)
	}
	r.watchOptionalAPIs(controllerBuilder, mgr.GetCache(), served)
	return controllerBuilder.Complete(reconciler.ClassifyErrors(r))
}

// enqueueOperatorNamespace enqueues the operator's namespace once. Other sources may have no event for the namespace: it is enabled
// without a label, and the settings may have been read before the controller subscribes to their changes.
func (r *runtimeReconciler) enqueueOperatorNamespace() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(modelmesh.RequestFor(r.Namespaces.OperatorNamespace))
		return nil
	})
}

// watchOptionalAPIs watches the kinds whose APIs can be installed and removed while the operator runs.
func (r *runtimeReconciler) watchOptionalAPIs(b *builder.Builder, cached cache.Cache, served *capability.Watcher) {
	watchKind := func(kind schema.GroupVersionKind, object client.Object, h handler.EventHandler) {
		b.WatchesRawSource(served.Kind(cached, kind, object, h, modelmesh.SpecOrAnnotationsChanged()))
	}
	watchKind(capability.ServingRuntime, &v1alpha1.ServingRuntime{}, r.Namespaces.EnqueueEnabled())
	if r.UsesClusterRuntimes() {
		watchKind(capability.ClusterServingRuntime, &v1alpha1.ClusterServingRuntime{}, r.Namespaces.Enqueue())
	}
	if !r.Config.IgnoreInferenceServices {
		watchKind(capability.InferenceService, &v1beta1.InferenceService{}, r.Namespaces.EnqueueEnabled())
	}
	b.WatchesRawSource(served.Kind(cached, capability.ServiceMonitor, nil, r.Namespaces.Enqueue(), metadataChanged()))
}

// enqueueForSecret enqueues the namespaces that read a Secret: all of them for shared Secrets in the operator's namespace.
func (r *runtimeReconciler) enqueueForSecret() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		namespace := o.GetNamespace()
		enabled, err := r.Namespaces.Enabled(ctx, namespace)
		if err == nil && !enabled && namespace != r.Namespaces.OperatorNamespace {
			return nil
		}
		settings, err := r.Settings(ctx, namespace)
		if err != nil {
			return nil // the first successful read of the settings enqueues all namespaces
		}
		shared := o.GetName() == settings.EtcdSecretName || o.GetName() == settings.TLS.SecretName
		switch {
		case shared && namespace == r.Namespaces.OperatorNamespace:
			return r.Namespaces.Requests(ctx)
		case shared || o.GetName() == authproxy.CookieSecret || o.GetName() == settings.StorageSecretName && !r.Config.IgnoreSecrets:
			return []reconcile.Request{modelmesh.RequestFor(namespace)}
		default:
			return nil
		}
	})
}

// mayBeReferenced reports whether annotation productConfig may refer to a ConfigMap. It excludes the ConfigMap that every namespace has.
func mayBeReferenced(o client.Object) bool { return o.GetName() != "kube-root-ca.crt" }

// metadataChanged passes creation, deletion and changes of the metadata. The cache stores only the managedFields entry of this operator,
// which changes when another client changes a field that the operator sets.
func metadataChanged() predicate.Predicate {
	metadata := func(o client.Object) []any {
		return []any{o.GetUID(), o.GetDeletionTimestamp(), o.GetLabels(), o.GetAnnotations(), o.GetOwnerReferences(), o.GetManagedFields()}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(metadata(e.ObjectOld), metadata(e.ObjectNew))
	}}
}
