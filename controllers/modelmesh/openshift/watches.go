package openshift

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
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
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// watching joins the controllers to what they depend on.
type watching struct {
	mgr    ctrl.Manager
	shared *modelmesh.Shared
	cached client.Reader
	// inferenceServices: those for the mesh count.
	inferenceServices bool
}

func (w watching) namespaces(ctx context.Context, c controller.Controller, connections cache.Cache) error {
	every := w.shared.Namespaces.EnqueueNamed()
	held := w.mgr.GetCache()
	sources := []source.Source{
		w.shared.Settings.Changes(every), w.shared.Served.Changes(&metav1.PartialObjectMetadata{}, every),
		source.Kind(connections, client.Object(modelmesh.Metadata(secretKind)), modelmesh.EnqueueNamespace()),
		source.Kind(held, client.Object(&v1alpha1.Predictor{}), modelmesh.EnqueueNamespace(), modelmesh.ComesOrGoes()),
		source.Kind(held, client.Object(&appsv1.Deployment{}), modelmesh.EnqueueNamespace(), predicate.And(apply.MadeBy(modelmesh.ComponentName), podsComeAndGo())),
		source.Kind(held, client.Object(modelmesh.Metadata(secretKind)), modelmesh.EnqueueNamespace(), w.concerning()),
		source.Kind(held, client.Object(modelmesh.Metadata(configMapKind)), modelmesh.EnqueueNamespace(), named(BundleConfigMap, AuthorityName)),
		source.Kind(held, client.Object(modelmesh.Metadata(delegatorKind)), handler.EnqueueRequestsFromMapFunc(byBinding), apply.MadeBy(modelmesh.ComponentName)),
	}
	for _, kind := range []schema.GroupVersionKind{accountKind, bindingKind} {
		sources = append(sources, source.Kind(held, client.Object(modelmesh.Metadata(kind)), modelmesh.EnqueueNamespace(), apply.MadeBy(modelmesh.ComponentName)))
	}
	if s, some := w.shared.Namespaces.Source(&handler.EnqueueRequestForObject{}); some {
		sources = append(sources, s)
	}
	w.shared.Served.WatchMetadata(ctx, c, capability.BackendTLSPolicy, modelmesh.EnqueueNamespace(), apply.MadeBy(modelmesh.ComponentName))
	if w.inferenceServices {
		w.shared.Served.Watch(ctx, c, capability.InferenceService, func() source.Source {
			return source.Kind(held, client.Object(&v1beta1.InferenceService{}), modelmesh.EnqueueNamespace(), changesSides())
		})
	}
	return watchAll(c, sources)
}

func (w watching) publications(ctx context.Context, c controller.Controller) error {
	held := w.mgr.GetCache()
	all := handler.EnqueueRequestsFromMapFunc(w.models)
	served := w.shared.Served
	served.Watch(ctx, c, capability.InferenceService, func() source.Source {
		return source.Kind(held, client.Object(&v1beta1.InferenceService{}), &handler.EnqueueRequestForObject{}, concerns())
	})
	served.Watch(ctx, c, capability.ServingRuntime, func() source.Source {
		return source.Kind(held, client.Object(&v1alpha1.ServingRuntime{}), all)
	})
	served.Watch(ctx, c, capability.ClusterServingRuntime, func() source.Source {
		return source.Kind(held, client.Object(&v1alpha1.ClusterServingRuntime{}), all)
	})
	owned := handler.EnqueueRequestForOwner(w.mgr.GetScheme(), w.mgr.GetRESTMapper(), &v1beta1.InferenceService{}, handler.OnlyControllerOwner())
	served.WatchMetadata(ctx, c, capability.Route, owned)
	served.WatchMetadata(ctx, c, capability.HTTPRoute, owned)
	sources := []source.Source{
		source.Kind(held, client.Object(modelmesh.Metadata(ingressKind)), owned),
		w.shared.Settings.Changes(all), served.Changes(&metav1.PartialObjectMetadata{}, all),
		source.Kind(held, client.Object(modelmesh.Metadata(secretKind)), all, w.ofTheMesh()),
	}
	if s, some := w.shared.Namespaces.Source(all); some {
		sources = append(sources, s)
	}
	return watchAll(c, sources)
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
func (w watching) models(ctx context.Context, object client.Object) []reconcile.Request {
	if !w.shared.Served.Current().Has(capability.InferenceService) {
		return nil
	}
	namespace := object.GetNamespace()
	if _, cluster := object.(*v1alpha1.ClusterServingRuntime); namespace == "" && !cluster {
		namespace = object.GetName()
	}
	var list v1beta1.InferenceServiceList
	if err := w.cached.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing InferenceServices")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if onMesh(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// byBinding maps a ClusterRoleBinding to the namespace that it was made for.
func byBinding(_ context.Context, o client.Object) []reconcile.Request {
	namespace, is := strings.CutSuffix(o.GetName(), delegatorTail)
	if !is || namespace == "" {
		return nil
	}
	return []reconcile.Request{modelmesh.RequestFor(namespace)}
}

// concerning admits the Secrets that are made here: by name, since the cache keeps no labels of foreign objects.
func (w watching) concerning() predicate.Predicate {
	mine := named(authproxy.CookieSecret, authproxy.TLSSecret)
	entries := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return w.isNamed(o, func(s meshsettings.Settings) string { return s.StorageSecretName })
	})
	marked := apply.BeforeOrAfter(func(o client.Object) bool { return ours(o) && o.GetLabels()[LabelManaged] == yes })
	return predicate.Or(mine, entries, marked)
}

// ofTheMesh admits the Secrets with the certificate of the mesh.
func (w watching) ofTheMesh() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return w.isNamed(o, func(s meshsettings.Settings) string { return s.TLS.SecretName })
	})
}

// isNamed tells whether an object has a name that the settings of the administrator give.
func (w watching) isNamed(o client.Object, which func(meshsettings.Settings) string) bool {
	settings, err := w.shared.Settings.Admin(context.Background())
	return err == nil && o.GetName() == which(settings)
}

// named admits objects by their names.
func named(all ...string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return slices.Contains(all, o.GetName())
	})
}

// podsComeAndGo admits a Deployment when it gets its first pod or loses its last.
func podsComeAndGo() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*appsv1.Deployment)
		after, too := e.ObjectNew.(*appsv1.Deployment)
		return is && too && (hasPods(before) != hasPods(after) || ours(before) != ours(after))
	}}
}

// changesSides admits an InferenceService when it appears, is gone, or begins or ceases to be for the mesh.
func changesSides() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, is := e.ObjectOld.(*v1beta1.InferenceService)
		after, too := e.ObjectNew.(*v1beta1.InferenceService)
		return is && too && onMesh(before) != onMesh(after)
	}}
}

// concerns admits what can matter in an InferenceService: its status is written often.
func concerns() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectNew.GetDeletionTimestamp() != nil &&
				(e.ObjectOld.GetDeletionTimestamp() == nil || len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers()))
		}})
}
