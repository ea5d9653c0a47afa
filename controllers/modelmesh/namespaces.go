package modelmesh

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// LabelEnabled on a namespace says whether it is served.
const LabelEnabled = "modelmesh-enabled"

// LabelEnforce on a namespace names the level of pod security without which no pod gets in.
const LabelEnforce = "pod-security.kubernetes.io/enforce"

// Namespaces knows which namespaces are served. Only those with LabelEnabled are held in memory, as metadata.
type Namespaces struct {
	// Home is the namespace of the manager, which is served as long as it has no label at all.
	OperatorNamespace string
	// Labelled reads the namespaces with the label; nil where only the manager's own is served.
	Cache cache.Cache
	// Live reads those without.
	APIReader client.Reader

	operatorMetadata atomic.Pointer[metav1.PartialObjectMetadata]
}

// NewNamespaces returns the namespaces of a cluster, or with onlyOwn just the manager's own, whatever its labels say: the
// program may not read namespaces then.
func NewNamespaces(mgr ctrl.Manager, own string, onlyOwn bool) (*Namespaces, error) {
	if onlyOwn {
		return &Namespaces{OperatorNamespace: own}, nil
	}
	has, err := labels.Parse(LabelEnabled)
	if err != nil {
		return nil, fmt.Errorf("selecting namespaces by label: %w", err)
	}
	labelled, err := component.NewSelectorCache(mgr, capability.MetadataOf(namespaceKind), cache.ByObject{Label: has}, stripNamespace)
	if err != nil {
		return nil, err
	}
	return &Namespaces{OperatorNamespace: own, Cache: labelled, APIReader: mgr.GetAPIReader()}, nil
}

// OnlyOwn tells whether no other namespace is ever served.
func (n *Namespaces) SingleNamespace() bool { return n.Cache == nil }

// Head returns the metadata of a namespace that has the label, whatever that says; nil for one that has none, or is none. It is part
// of the cache and must not be changed.
func (n *Namespaces) GetLabelled(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	if n.SingleNamespace() {
		return nil, nil
	}
	return capability.GetMetadata(ctx, n.Cache, namespaceKind, client.ObjectKey{Name: name})
}

// Metadata returns that of a namespace; nil for one that is gone. One without the label is not in memory: it is read, the manager's
// own once, since it lasts as long as the manager runs in it.
func (n *Namespaces) GetMetadata(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	head, err := n.GetLabelled(ctx, name)
	if err != nil || head != nil {
		return head, err
	}
	if known := n.operatorMetadata.Load(); known != nil && name == n.OperatorNamespace {
		return known, nil
	}
	head, err = capability.GetMetadata(ctx, n.APIReader, namespaceKind, client.ObjectKey{Name: name})
	if head != nil && name == n.OperatorNamespace && head.DeletionTimestamp == nil {
		n.operatorMetadata.Store(head)
	}
	return head, err
}

// Narrow limits a cache to the namespaces that may ever be served.
func (n *Namespaces) CacheByObject() cache.ByObject {
	if n.SingleNamespace() {
		return cache.ByObject{Namespaces: map[string]cache.Config{n.OperatorNamespace: {}}}
	}
	return cache.ByObject{}
}

// Enabled tells whether a namespace is served: when its label says "true" and it is not being deleted, and the manager's own
// also without a label. An error says that it is not known; nothing must be removed then.
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

// List returns the namespaces that are served, sorted.
func (n *Namespaces) List(ctx context.Context) ([]string, error) {
	if n.SingleNamespace() {
		return []string{n.OperatorNamespace}, nil
	}
	labelled, err := ListMetadata(ctx, n.Cache, namespaceKind)
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range labelled {
		if isEnabled(&labelled[i]) {
			out = append(out, labelled[i].Name)
		}
	}
	if !slices.ContainsFunc(labelled, func(m metav1.PartialObjectMetadata) bool { return m.Name == n.OperatorNamespace }) {
		out = append(out, n.OperatorNamespace)
	}
	slices.Sort(out)
	return out, nil
}

// Source tells a controller when a namespace gets, changes or loses the label. There is none where nothing can change.
func (n *Namespaces) Source(h handler.EventHandler) (source.Source, bool) {
	if n.SingleNamespace() {
		return nil, false
	}
	return source.Kind(n.Cache, client.Object(capability.MetadataOf(namespaceKind)), h), true
}

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// RequestFor is the request for a namespace.
func RequestFor(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}
}

// enabled reads the label. A namespace that is being deleted is not served.
func isEnabled(namespace metav1.Object) bool {
	return namespace.GetLabels()[LabelEnabled] == "true" && namespace.GetDeletionTimestamp().IsZero()
}

// Heads lists the metadata of objects. They may be part of the cache and must not be changed.
func ListMetadata(ctx context.Context, from client.Reader, kind schema.GroupVersionKind,
	options ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := from.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// bareNamespace keeps the fields of a namespace that are read.
func stripNamespace(in any) (any, error) {
	if m, ok := in.(*metav1.PartialObjectMetadata); ok {
		m.Labels = map[string]string{LabelEnabled: m.Labels[LabelEnabled], LabelEnforce: m.Labels[LabelEnforce]}
		m.Annotations, m.ManagedFields, m.OwnerReferences, m.Finalizers = nil, nil, nil, nil
	}
	return in, nil
}

// EnqueueNamespace maps an object to its namespace, served or not: what we left in one that is not has to go.
func EnqueueNamespace() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{RequestFor(o.GetNamespace())}
	})
}

// EnqueueServed maps an object of a user to its namespace when that is served. There may be thousands in others.
func (n *Namespaces) EnqueueEnabled() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		on, err := n.Enabled(ctx, o.GetNamespace())
		if err == nil && !on {
			return nil
		}
		return []reconcile.Request{RequestFor(o.GetNamespace())}
	})
}

// EnqueueAll maps whatever happened to all namespaces that are served.
func (n *Namespaces) EnqueueAllEnabled() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return n.Requests(ctx) })
}

// EnqueueNamed maps a Namespace whose settings changed to itself; one without a name stands for all that are served.
func (n *Namespaces) EnqueueByName() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		if o.GetName() == "" {
			return n.Requests(ctx)
		}
		return []reconcile.Request{RequestFor(o.GetName())}
	})
}

// All are the requests for all namespaces that are served; an error is logged.
func (n *Namespaces) Requests(ctx context.Context) []reconcile.Request {
	list, err := n.List(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the namespaces that are served")
	}
	var out []reconcile.Request
	for _, name := range list {
		out = append(out, RequestFor(name))
	}
	return out
}

// ComesOrGoes admits what only has to be there.
func CreatedOrDeleted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() }}
}

// SpecChanged lets through what matters in models and runtimes: their status is written often. At the end of an object it is also which
// finalizers are left.
func SpecChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, reconciler.Relisted(), predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetUID() != after.GetUID() || !before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) ||
			after.GetDeletionTimestamp() != nil && len(before.GetFinalizers()) != len(after.GetFinalizers())
	}})
}

// SpecOrAnnotations is for the kinds of KServe, which have settings in annotations.
func SpecOrAnnotationsChanged() predicate.Predicate {
	return predicate.Or(SpecChanged(), predicate.AnnotationChangedPredicate{})
}
