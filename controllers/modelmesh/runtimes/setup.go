package runtimes

import (
	"context"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
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

// Rights on what runtimes consist of. They make a role of their own, so that an installation with a single served namespace can grant
// them there only. Of Services and Deployments the finalizers may be written: a ServiceMonitor belongs to the Service, and where one
// namespace is served the Service to the Deployment of the manager. OpenShift asks for that right before it stores an owner reference
// that holds up deletion.

// +kubebuilder:rbac:groups="",resources=services;secrets;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch

// Caches says what is held in memory: of children the metadata, by our label; Deployments whole, for their replicas; Secrets and
// ConfigMaps, which belong to users, as bare metadata. An empty namespace is all; where it is one there is no NetworkPolicy.
func Caches(namespace string) []component.CacheNeed {
	needs := []component.CacheNeed{
		{Kind: deploymentKind, Namespace: namespace, FullObjects: true},
		{Kind: serviceKind, Namespace: namespace},
		{Kind: autoscalerKind, Namespace: namespace},
		{Kind: secretKind, Namespace: namespace, IncludeForeign: true},
		{Kind: configMapKind, Namespace: namespace, IncludeForeign: true},
		{Kind: capability.ServiceMonitor},
	}
	if namespace == "" {
		needs = append(needs, component.CacheNeed{Kind: policyKind})
	}
	return needs
}

// Setup registers the controller of runtimes. It is a modelmesh.Part.
func Setup(ctx context.Context, mgr ctrl.Manager, shared *modelmesh.Dependencies) error {
	claims, err := component.NewSelectorCache(mgr, capability.MetadataOf(pvcKind), shared.Namespaces.CacheByObject(), component.StripMetadata)
	if err != nil {
		return err
	}
	pods, err := newPodCache(mgr, shared.Namespaces)
	if err != nil {
		return err
	}
	r := newReconciler(&runtimeReconciler{
		Catalog: shared.Catalog, authors: shared.Config.Authors, clock: shared.Clock, recorder: shared.Recorder,
		live: mgr.GetAPIReader(), claims: claims, pods: pods, applier: shared.Applier, pool: shared.Pool, stream: shared.Events,
	})
	c, err := r.newController(mgr, claims, pods, shared.Served, shared.Settings)
	if err != nil {
		return fmt.Errorf("building the controller of runtimes: %w", err)
	}
	r.watchOptionalAPIs(ctx, mgr, c, shared.Served)
	if err := mgr.Add(&legacyCleaner{runtimeReconciler: r, log: mgr.GetLogger().WithName(modelmesh.ComponentName)}); err != nil {
		return fmt.Errorf("adding to the manager: %w", err)
	}
	return nil
}

// watch builds the controller on all kinds that are always there.
func (r *runtimeReconciler) newController(mgr ctrl.Manager, claims, pods cache.Cache, served *capability.Watcher, settings *meshsettings.Source) (controller.Controller, error) {
	moved := builder.WithPredicates(managedFieldsChanged())
	building := ctrl.NewControllerManagedBy(mgr).Named(modelmesh.ComponentName).WithOptions(reconciler.ControllerOptions()).
		Watches(&v1alpha1.Predictor{}, r.Namespaces.EnqueueEnabled(), builder.WithPredicates(modelmesh.SpecChanged())).
		Watches(&appsv1.Deployment{}, modelmesh.EnqueueNamespace(), builder.WithPredicates(predicate.Or(managedFieldsChanged(), availabilityChanged()))).
		WatchesRawSource(source.Kind(pods, client.Object(&corev1.Pod{}), modelmesh.EnqueueNamespace(), podProblemChanged())).
		WatchesMetadata(&corev1.Service{}, modelmesh.EnqueueNamespace(), moved).
		WatchesMetadata(&autoscalingv2.HorizontalPodAutoscaler{}, modelmesh.EnqueueNamespace(), moved).
		WatchesMetadata(&corev1.ConfigMap{}, r.Namespaces.EnqueueEnabled(), builder.WithPredicates(managedFieldsChanged(), predicate.NewPredicateFuncs(mayBeReferenced))).
		WatchesMetadata(&corev1.Secret{}, r.enqueueForSecret()).
		WatchesRawSource(source.Kind(claims, client.Object(capability.MetadataOf(pvcKind)), r.Namespaces.EnqueueEnabled(), modelmesh.CreatedOrDeleted())).
		WatchesRawSource(settings.Changes(r.Namespaces.EnqueueByName())).
		WatchesRawSource(served.Changes(&corev1.Namespace{}, r.Namespaces.EnqueueAllEnabled())).
		WatchesRawSource(r.enqueueOperatorNamespace())
	if namespaces, watched := r.Namespaces.Source(&handler.EnqueueRequestForObject{}); watched {
		building.WatchesRawSource(namespaces).WatchesMetadata(&networkingv1.NetworkPolicy{}, modelmesh.EnqueueNamespace(), moved)
	}
	return building.Build(reconciler.ClassifyErrors(r))
}

// atStart enqueues the namespace of the manager once. That is served without a label and without a runtime in it, so no event
// may ever tell of it: the settings may have been read before the controller listened for their changes.
func (r *runtimeReconciler) enqueueOperatorNamespace() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(modelmesh.RequestFor(r.Namespaces.OperatorNamespace))
		return nil
	})
}

// watchOptional follows the kinds whose APIs may come and go.
func (r *runtimeReconciler) watchOptionalAPIs(ctx context.Context, mgr ctrl.Manager, c controller.Controller, served *capability.Watcher) {
	follow := func(kind schema.GroupVersionKind, object client.Object, h handler.EventHandler) {
		served.Watch(ctx, c, kind, func() source.Source {
			return source.Kind(mgr.GetCache(), object, h, modelmesh.SpecOrAnnotationsChanged())
		})
	}
	follow(capability.ServingRuntime, &v1alpha1.ServingRuntime{}, r.Namespaces.EnqueueEnabled())
	if r.UsesClusterRuntimes() {
		follow(capability.ClusterServingRuntime, &v1alpha1.ClusterServingRuntime{}, r.Namespaces.EnqueueAllEnabled())
	}
	if !r.Config.IgnoreInferenceServices {
		follow(capability.InferenceService, &v1beta1.InferenceService{}, r.Namespaces.EnqueueEnabled())
	}
	served.WatchMetadata(ctx, c, capability.ServiceMonitor, modelmesh.EnqueueNamespace(), managedFieldsChanged())
}

// bySecret maps a Secret that pods or we read: in the manager's own namespace it may matter to all.
func (r *runtimeReconciler) enqueueForSecret() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		namespace := o.GetNamespace()
		on, err := r.Namespaces.Enabled(ctx, namespace)
		if err == nil && !on && namespace != r.Namespaces.OperatorNamespace {
			return nil
		}
		settings, err := r.Settings(ctx, namespace)
		if err != nil {
			return nil // nothing has been served yet, and the first reading enqueues all namespaces
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

// readsConfigMap selects tc-config and, which may be any, what a runtime names as its product: there are few in served namespaces. One
// that every namespace has is neither.
func mayBeReferenced(o client.Object) bool { return o.GetName() != "kube-root-ca.crt" }

// touched lets through what matters in objects of ours: that they come and go, and that another client changed a field which we set. Of
// managed fields the cache keeps our own entry alone.
func managedFieldsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetUID() != after.GetUID() ||
			!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) ||
			!reflect.DeepEqual(before.GetLabels(), after.GetLabels()) ||
			!reflect.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) ||
			!reflect.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) ||
			!reflect.DeepEqual(before.GetManagedFields(), after.GetManagedFields())
	}}
}
