package modelmesh

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// LabelEnabled enables ModelMesh in a namespace.
const LabelEnabled = "modelmesh-enabled"

// LabelEnforce is the label with the Pod Security Standard that a namespace enforces.
const LabelEnforce = "pod-security.kubernetes.io/enforce"

// Namespaces selects the namespaces in which ModelMesh is enabled.
type Namespaces struct {
	// OperatorNamespace is enabled without LabelEnabled too.
	OperatorNamespace string
	// Cache holds the metadata of namespaces with LabelEnabled; nil if only the operator's namespace is enabled.
	Cache cache.Cache
	// APIReader reads namespaces without the label.
	APIReader client.Reader

	operatorMetadata atomic.Pointer[metav1.PartialObjectMetadata]
}

// NewNamespaces returns the Namespaces of a cluster. With singleNamespace only the operator's namespace is enabled, regardless of its
// labels, because the operator then has no permission to read namespaces.
func NewNamespaces(mgr ctrl.Manager, operatorNamespace string, singleNamespace bool) (*Namespaces, error) {
	if singleNamespace {
		return &Namespaces{OperatorNamespace: operatorNamespace}, nil
	}
	labelled, err := caches.New(mgr, LabelEnabled, cache.Options{DefaultTransform: stripNamespace})
	if err != nil {
		return nil, err
	}
	return &Namespaces{OperatorNamespace: operatorNamespace, Cache: labelled, APIReader: mgr.GetAPIReader()}, nil
}

// SingleNamespace reports whether only the operator's namespace can be enabled.
func (n *Namespaces) SingleNamespace() bool { return n.Cache == nil }

// GetLabelled returns the metadata of a namespace with LabelEnabled, or nil if it does not exist or lacks the label, and in a
// single-namespace installation. The object is shared with the cache and must not be changed.
func (n *Namespaces) GetLabelled(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	if n.SingleNamespace() {
		return nil, nil
	}
	return objectmeta.Get(ctx, n.Cache, namespaceKind, client.ObjectKey{Name: name})
}

// GetMetadata returns the metadata of a namespace, or nil if it does not exist. A namespace without the label is read from the API
// server; the metadata of the operator's namespace is then cached. GetMetadata must not be called in a single-namespace installation.
func (n *Namespaces) GetMetadata(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	metadata, err := n.GetLabelled(ctx, name)
	if err != nil || metadata != nil {
		return metadata, err
	}
	if cached := n.operatorMetadata.Load(); cached != nil && name == n.OperatorNamespace {
		return cached, nil
	}
	metadata, err = objectmeta.Get(ctx, n.APIReader, namespaceKind, client.ObjectKey{Name: name})
	if metadata != nil && name == n.OperatorNamespace && metadata.DeletionTimestamp == nil {
		n.operatorMetadata.Store(metadata)
	}
	return metadata, err
}

// NewCache adds to the manager a cache of objects in the namespaces that can be enabled. An empty label selects all objects.
func (n *Namespaces) NewCache(mgr ctrl.Manager, label string, transform toolscache.TransformFunc) (cache.Cache, error) {
	options := cache.Options{DefaultTransform: transform}
	if n.SingleNamespace() {
		options.DefaultNamespaces = map[string]cache.Config{n.OperatorNamespace: {}}
	}
	return caches.New(mgr, label, options)
}

// Enabled reports whether ModelMesh is enabled in a namespace: LabelEnabled is "true" and the namespace is not terminating. The
// operator's namespace is enabled without a label too. Callers must not delete anything after an error.
func (n *Namespaces) Enabled(ctx context.Context, name string) (bool, error) {
	if n.SingleNamespace() {
		return name == n.OperatorNamespace, nil
	}
	namespace, err := n.GetLabelled(ctx, name)
	if err != nil {
		return false, err
	}
	if namespace == nil {
		return name == n.OperatorNamespace, nil
	}
	return isEnabled(namespace), nil
}

// List returns the enabled namespaces, sorted.
func (n *Namespaces) List(ctx context.Context) ([]string, error) {
	if n.SingleNamespace() {
		return []string{n.OperatorNamespace}, nil
	}
	labelled, err := ListMetadata(ctx, n.Cache, namespaceKind)
	if err != nil {
		return nil, err
	}
	var namespaces []string
	for i := range labelled {
		if isEnabled(&labelled[i]) {
			namespaces = append(namespaces, labelled[i].Name)
		}
	}
	if !slices.ContainsFunc(labelled, func(m metav1.PartialObjectMetadata) bool { return m.Name == n.OperatorNamespace }) {
		namespaces = append(namespaces, n.OperatorNamespace)
	}
	slices.Sort(namespaces)
	return namespaces, nil
}

// Source returns a source of events for namespaces with LabelEnabled, or false if only the operator's namespace can be enabled.
func (n *Namespaces) Source(h handler.EventHandler) (source.Source, bool) {
	if n.SingleNamespace() {
		return nil, false
	}
	return source.Kind(n.Cache, client.Object(objectmeta.New(namespaceKind)), h), true
}

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// RequestFor returns the request for a namespace.
func RequestFor(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}
}

func isEnabled(namespace metav1.Object) bool {
	return namespace.GetLabels()[LabelEnabled] == "true" && namespace.GetDeletionTimestamp().IsZero()
}

// ListMetadata lists the metadata of objects. The objects may be shared with the cache and must not be changed.
func ListMetadata(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind,
	options ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	list := objectmeta.NewList(kind)
	if err := reader.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// stripNamespace removes the fields of a namespace that are not read.
func stripNamespace(in any) (any, error) {
	if m, ok := in.(*metav1.PartialObjectMetadata); ok {
		m.Labels = map[string]string{LabelEnabled: m.Labels[LabelEnabled], LabelEnforce: m.Labels[LabelEnforce]}
		m.Annotations, m.ManagedFields, m.OwnerReferences, m.Finalizers = nil, nil, nil, nil
	}
	return in, nil
}

// Enqueue returns a handler that enqueues the namespace of an object. A namespace that is not enabled is enqueued too, because its managed
// objects must be deleted. A cluster-scoped object other than a Namespace enqueues all enabled namespaces.
func (n *Namespaces) Enqueue() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(n.requestsFor)
}

// EnqueueEnabled is like Enqueue, but ignores objects in namespaces that are not enabled: there can be thousands of such objects.
func (n *Namespaces) EnqueueEnabled() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		if enabled, err := n.Enabled(ctx, o.GetNamespace()); o.GetNamespace() != "" && err == nil && !enabled {
			return nil
		}
		return n.requestsFor(ctx, o)
	})
}

func (n *Namespaces) requestsFor(ctx context.Context, o client.Object) []reconcile.Request {
	name := o.GetNamespace()
	if namespace, ok := o.(*corev1.Namespace); ok {
		name = namespace.Name
	}
	if name == "" {
		return n.Requests(ctx)
	}
	return []reconcile.Request{RequestFor(name)}
}

// Requests returns the requests for all enabled namespaces, or logs an error and returns none.
func (n *Namespaces) Requests(ctx context.Context) []reconcile.Request {
	list, err := n.List(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the enabled namespaces")
	}
	var requests []reconcile.Request
	for _, name := range list {
		requests = append(requests, RequestFor(name))
	}
	return requests
}

// CreatedOrDeleted drops updates, unless a changed UID shows that the object was recreated.
func CreatedOrDeleted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() }}
}

// SpecOrAnnotationsChanged passes relists, recreated objects, the start of a deletion, and changes of the spec, of the annotations (KServe
// stores settings there) and of the finalizers of a terminating object. It drops status updates, which are frequent.
func SpecOrAnnotationsChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, reconciler.Relisted(), predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		oldObject, newObject := e.ObjectOld, e.ObjectNew
		return oldObject.GetUID() != newObject.GetUID() || !oldObject.GetDeletionTimestamp().Equal(newObject.GetDeletionTimestamp()) ||
			newObject.GetDeletionTimestamp() != nil && len(oldObject.GetFinalizers()) != len(newObject.GetFinalizers())
	}})
}
