package modelmesh

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// LabelEnabled on a namespace says whether it is served.
const LabelEnabled = "modelmesh-enabled"

// LabelEnforce on a namespace names the level of pod security without which no pod gets in.
const LabelEnforce = "pod-security.kubernetes.io/enforce"

// Namespaces knows which namespaces are served. Only those with LabelEnabled are held in memory, as metadata.
type Namespaces struct {
	// Home is the namespace of the manager, which is served as long as it has no label at all.
	Home string
	// Labelled reads the namespaces with the label; nil where only the manager's own is served.
	Labelled cache.Cache
	// Live reads those without.
	Live client.Reader

	home atomic.Pointer[metav1.PartialObjectMetadata]
}

// NewNamespaces returns the namespaces of a cluster, or with onlyOwn just the manager's own, whatever its labels say: the
// program may not read namespaces then.
func NewNamespaces(mgr ctrl.Manager, own string, onlyOwn bool) (*Namespaces, error) {
	if onlyOwn {
		return &Namespaces{Home: own}, nil
	}
	has, err := labels.NewRequirement(LabelEnabled, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting namespaces by label: %w", err)
	}
	labelled, err := component.Narrow(mgr, Metadata(namespaceKind), cache.ByObject{Label: labels.NewSelector().Add(*has)}, bareNamespace)
	if err != nil {
		return nil, err
	}
	return &Namespaces{Home: own, Labelled: labelled, Live: mgr.GetAPIReader()}, nil
}

// Own is the namespace of the manager.
func (n *Namespaces) Own() string { return n.Home }

// OnlyOwn tells whether no other namespace is ever served.
func (n *Namespaces) OnlyOwn() bool { return n.Labelled == nil }

// Head returns the metadata of a namespace that has the label, whatever that says; nil for one that has none, or is none. It is part
// of the cache and must not be changed.
func (n *Namespaces) Head(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	if n.OnlyOwn() {
		return nil, nil
	}
	namespace := Metadata(namespaceKind)
	err := n.Labelled.Get(ctx, types.NamespacedName{Name: name}, namespace, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return namespace, nil
}

// Metadata returns that of a namespace; nil for one that is gone. One without the label is not in memory: it is read, the manager's
// own once, since it lasts as long as the manager runs in it.
func (n *Namespaces) Metadata(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	head, err := n.Head(ctx, name)
	if err != nil || head != nil {
		return head, err
	}
	if known := n.home.Load(); known != nil && name == n.Home {
		return known, nil
	}
	head = Metadata(namespaceKind)
	err = n.Live.Get(ctx, client.ObjectKey{Name: name}, head)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if name == n.Home && head.DeletionTimestamp == nil {
		n.home.Store(head)
	}
	return head, nil
}

// Narrow limits a cache to the namespaces that may ever be served.
func (n *Namespaces) Narrow() cache.ByObject {
	if n.OnlyOwn() {
		return cache.ByObject{Namespaces: map[string]cache.Config{n.Home: {}}}
	}
	return cache.ByObject{}
}

// Enabled tells whether a namespace is served: when its label says "true" and it is not being deleted, and the manager's own
// also without a label. An error says that it is not known; nothing must be removed then.
func (n *Namespaces) Enabled(ctx context.Context, name string) (bool, error) {
	if n.OnlyOwn() {
		return name == n.Home, nil
	}
	namespace, err := n.Head(ctx, name)
	if err != nil {
		return false, err
	}
	if namespace == nil {
		return name == n.Home, nil
	}
	return enabled(namespace), nil
}

// List returns the namespaces that are served, sorted.
func (n *Namespaces) List(ctx context.Context) ([]string, error) {
	if n.OnlyOwn() {
		return []string{n.Home}, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(namespaceKind.GroupVersion().WithKind("NamespaceList"))
	if err := n.Labelled.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	own := true
	var out []string
	for i := range list.Items {
		if list.Items[i].Name == n.Home {
			own = false
		}
		if enabled(&list.Items[i]) {
			out = append(out, list.Items[i].Name)
		}
	}
	if own {
		out = append(out, n.Home)
	}
	slices.Sort(out)
	return out, nil
}

// Source tells a controller when a namespace gets, changes or loses the label. There is none where nothing can change.
func (n *Namespaces) Source(h handler.EventHandler) (source.Source, bool) {
	if n.OnlyOwn() {
		return nil, false
	}
	return source.Kind(n.Labelled, client.Object(Metadata(namespaceKind)), h), true
}

// Requests returns one request for each namespace that is served, with the namespace as its name.
func (n *Namespaces) Requests(ctx context.Context) ([]reconcile.Request, error) {
	list, err := n.List(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]reconcile.Request, 0, len(list))
	for _, name := range list {
		out = append(out, RequestFor(name))
	}
	return out, nil
}

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// RequestFor is the request for a namespace.
func RequestFor(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}
}

// enabled reads the label. A namespace that is being deleted is not served.
func enabled(namespace metav1.Object) bool {
	return namespace.GetLabels()[LabelEnabled] == "true" && namespace.GetDeletionTimestamp().IsZero()
}

// Metadata is an empty object of a kind, to read its metadata into.
func Metadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kind)
	return m
}

// bareNamespace keeps the fields of a namespace that are read.
func bareNamespace(in any) (any, error) {
	if m, ok := in.(*metav1.PartialObjectMetadata); ok {
		m.Labels = map[string]string{LabelEnabled: m.Labels[LabelEnabled], LabelEnforce: m.Labels[LabelEnforce]}
		m.Annotations, m.ManagedFields, m.OwnerReferences, m.Finalizers = nil, nil, nil, nil
	}
	return in, nil
}
