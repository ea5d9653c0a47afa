package runtimes

import (
	"context"
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
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// watch builds the controller on all kinds that are always there.
func (s *server) watch(mgr ctrl.Manager, claims cache.Cache, served *capability.Watcher, settings *meshsettings.Source) (controller.Controller, error) {
	moved := builder.WithPredicates(touched())
	building := ctrl.NewControllerManagedBy(mgr).Named(modelmesh.ComponentName).WithOptions(reconciler.ControllerOptions()).
		Watches(&v1alpha1.Predictor{}, s.Namespaces.EnqueueServed(), builder.WithPredicates(specChanged())).
		Watches(&appsv1.Deployment{}, modelmesh.EnqueueNamespace(), moved).
		WatchesMetadata(&corev1.Service{}, modelmesh.EnqueueNamespace(), moved).
		WatchesMetadata(&autoscalingv2.HorizontalPodAutoscaler{}, modelmesh.EnqueueNamespace(), moved).
		WatchesMetadata(&corev1.ConfigMap{}, s.Namespaces.EnqueueServed(), builder.WithPredicates(touched(), predicate.NewPredicateFuncs(readsConfigMap))).
		WatchesMetadata(&corev1.Secret{}, s.bySecret()).
		WatchesRawSource(source.Kind(claims, client.Object(modelmesh.Metadata(claimKind)), s.Namespaces.EnqueueServed(), modelmesh.ComesOrGoes())).
		WatchesRawSource(settings.Changes(s.Namespaces.EnqueueNamed())).
		WatchesRawSource(served.Changes(&corev1.Namespace{}, s.Namespaces.EnqueueAll())).
		WatchesRawSource(s.atStart())
	if namespaces, watched := s.Namespaces.Source(&handler.EnqueueRequestForObject{}); watched {
		building.WatchesRawSource(namespaces).WatchesMetadata(&networkingv1.NetworkPolicy{}, modelmesh.EnqueueNamespace(), moved)
	}
	return building.Build(reconciler.ClassifyErrors(s))
}

// atStart enqueues the namespace of the manager once. That is served without a label and without a runtime in it, so no event
// may ever tell of it: the settings may have been read before the controller listened for their changes.
func (s *server) atStart() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(modelmesh.RequestFor(s.Namespaces.Own()))
		return nil
	})
}

// watchOptional follows the kinds whose APIs may come and go.
func (s *server) watchOptional(ctx context.Context, mgr ctrl.Manager, c controller.Controller, served *capability.Watcher) {
	follow := func(kind schema.GroupVersionKind, object client.Object, h handler.EventHandler) {
		served.Watch(ctx, c, kind, func() source.Source { return source.Kind(mgr.GetCache(), object, h, specOrAnnotations()) })
	}
	follow(capability.ServingRuntime, &v1alpha1.ServingRuntime{}, s.Namespaces.EnqueueServed())
	if s.UsesClusterRuntimes() {
		follow(capability.ClusterServingRuntime, &v1alpha1.ClusterServingRuntime{}, s.Namespaces.EnqueueAll())
	}
	if !s.Config.IgnoreInferenceServices {
		follow(capability.InferenceService, &v1beta1.InferenceService{}, s.Namespaces.EnqueueServed())
	}
	served.WatchMetadata(ctx, c, capability.ServiceMonitor, modelmesh.EnqueueNamespace(), touched())
}

// bySecret maps a Secret that pods or we read: in the manager's own namespace it may matter to all.
func (s *server) bySecret() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		namespace := o.GetNamespace()
		on, err := s.Namespaces.Enabled(ctx, namespace)
		if err == nil && !on && namespace != s.Namespaces.Own() {
			return nil
		}
		settings, err := s.Settings(ctx, namespace)
		if err != nil {
			return nil // nothing has been served yet, and the first reading enqueues all namespaces
		}
		shared := o.GetName() == settings.EtcdSecretName || o.GetName() == settings.TLS.SecretName
		switch {
		case shared && namespace == s.Namespaces.Own():
			return s.Namespaces.All(ctx)
		case shared || o.GetName() == settings.StorageSecretName && !s.Config.IgnoreSecrets:
			return []reconcile.Request{modelmesh.RequestFor(namespace)}
		default:
			return nil
		}
	})
}

// readsConfigMap selects tc-config and, which may be any, what a runtime names as its product: there are few in served namespaces.
func readsConfigMap(o client.Object) bool { return o.GetName() != rootCertificates }

// rootCertificates is a ConfigMap that every namespace has.
const rootCertificates = "kube-root-ca.crt"

// touched lets through what matters in objects of ours: that they come and go, and that another client changed a field which we set. Of
// managed fields the cache keeps our own entry alone.
func touched() predicate.Predicate {
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

// specChanged lets through what matters in models: their status is written often.
func specChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || !e.ObjectOld.GetDeletionTimestamp().Equal(e.ObjectNew.GetDeletionTimestamp())
	}})
}

// specOrAnnotations is for the kinds of KServe, which have settings in annotations.
func specOrAnnotations() predicate.Predicate {
	return predicate.Or(specChanged(), predicate.AnnotationChangedPredicate{})
}
