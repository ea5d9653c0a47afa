package modelregistry

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// podCache holds the pods of registries, and of their databases, without what is not read.
func podCache(mgr ctrl.Manager, namespace string) (cache.Cache, error) {
	by := cache.ByObject{Label: k8slabels.SelectorFromSet(k8slabels.Set{resources.LabelComponent: resources.PartOf})}
	if namespace != "" {
		by.Namespaces = map[string]cache.Config{namespace: {}}
	}
	return component.Narrow(mgr, &corev1.Pod{}, by, slimPod)
}

// slimPod keeps of a pod its labels, the names of its containers and its status.
func slimPod(in any) (any, error) {
	pod, ok := in.(*corev1.Pod)
	if !ok {
		return in, nil // a tombstone carries an object that was transformed before
	}
	pod.ManagedFields, pod.Annotations, pod.OwnerReferences = nil, nil, nil
	containers := make([]corev1.Container, len(pod.Spec.Containers))
	for i, c := range pod.Spec.Containers {
		containers[i].Name = c.Name
	}
	pod.Spec = corev1.PodSpec{Containers: containers}
	return pod, nil
}

// request names a registry, unless something of its name is missing.
func request(namespace, name string) []reconcile.Request {
	if namespace == "" || name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// byLabels leads objects that have no owner to their registry.
func byLabels() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if !apply.IsOurs(o, ComponentName) {
			return nil
		}
		return request(o.GetLabels()[resources.LabelNamespace], o.GetLabels()[resources.LabelApp])
	})
}

// byApp leads pods to their registry.
func byApp() handler.TypedEventHandler[client.Object, reconcile.Request] {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return request(o.GetNamespace(), o.GetLabels()[resources.LabelApp])
	})
}

// byServiceName leads endpoints to the registry whose Service they belong to.
func byServiceName() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if !apply.IsOurs(o, ComponentName) {
			return nil
		}
		return request(o.GetNamespace(), o.GetLabels()[discoveryv1.LabelServiceName])
	})
}

// consumers maps an object to the registries in its namespace that use it.
func (r *registries) consumers(uses func(*v1beta1.ModelRegistry, string) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		return r.matching(ctx, o.GetNamespace(), func(m *v1beta1.ModelRegistry) bool { return uses(m, o.GetName()) })
	})
}

// every maps whatever happened to all registries.
func (r *registries) every() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return r.matching(ctx, "", func(*v1beta1.ModelRegistry) bool { return true })
	})
}

// matching returns the registries of a namespace, "" for all, that something concerns.
func (r *registries) matching(ctx context.Context, namespace string, concerned func(*v1beta1.ModelRegistry) bool) []reconcile.Request {
	list := &v1beta1.ModelRegistryList{}
	if err := r.cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing model registries")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if m := &list.Items[i]; concerned(m) {
			requests = append(requests, request(m.Namespace, m.Name)...)
		}
	}
	return requests
}

func usesClaim(m *v1beta1.ModelRegistry, name string) bool {
	return generates(m) && (name == resources.ClaimName(m) || name == resources.BackupClaimName(m))
}

func usesSecret(m *v1beta1.ModelRegistry, name string) bool {
	return name == resources.ServingSecretName(m) || generates(m) && madeForDatabase(m, name) || refersTo(m, reference.Secret, name)
}

func usesConfigMap(m *v1beta1.ModelRegistry, name string) bool {
	return refersTo(m, reference.ConfigMap, name)
}

// refersTo says whether the stored spec names an object that the pods consume.
func refersTo(m *v1beta1.ModelRegistry, kind reference.Kind, name string) bool {
	all := slices.Concat(references(m), servingReferences(m), reference.OfPods(&m.Spec.Pods))
	return slices.ContainsFunc(all, func(ref reference.Reference) bool { return ref.Kind == kind && ref.Name == name })
}

// wholeObject is an empty object of a kind that has no Go type here.
func wholeObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}
