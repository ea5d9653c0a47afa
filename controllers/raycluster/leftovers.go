package raycluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/ray"
)

// ownKinds are those of the objects in the namespace of a cluster that are always served.
var ownKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("Service"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	networkingv1.SchemeGroupVersion.WithKind("Ingress"), networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
}

// optionalKinds may come and go.
var optionalKinds = []schema.GroupVersionKind{capability.Route, capability.HTTPRoute, capability.Certificate}

// prunable are the kinds of which an object may become unwanted.
func prunable(served capability.Set) []schema.GroupVersionKind {
	kinds := append([]schema.GroupVersionKind{}, ownKinds...)
	for _, kind := range optionalKinds {
		if served.Has(kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// prune removes what is not wanted, and with it what the CodeFlare operator made that is not wanted.
func (r *clusters) prune(ctx context.Context, cluster *unstructured.Unstructured, c ray.Cluster, wanted apply.Desired) error {
	if err := r.applier.Prune(ctx, cluster, wanted, prunable(r.served()), nil); err != nil {
		return fmt.Errorf("removing what is not wanted: %w", err)
	}
	old, err := r.leftovers.of(ctx, r.live, r.served(), client.ObjectKeyFromObject(cluster))
	if err != nil {
		return err
	}
	var errs []error
	for i := range old {
		object := &old[i]
		ours := metav1.IsControlledBy(object, cluster) || object.Namespace == "" && belongs(object, c)
		if !ours || object.Namespace != "" && isWanted(wanted, object) || object.Name == c.Names().ClusterRoleBinding {
			continue
		}
		errs = append(errs, r.applier.Remove(ctx, cluster.GetUID(), object))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing what the CodeFlare operator left: %w", err)
	}
	r.leftovers.done(client.ObjectKeyFromObject(cluster))
	return nil
}

func isWanted(wanted apply.Desired, object *metav1.PartialObjectMetadata) bool {
	for _, w := range wanted {
		if kind, at, err := w.Place(); err == nil && kind.Kind == object.Kind && at.Name == object.Name {
			return true
		}
	}
	return false
}

// leftovers are what the CodeFlare operator made and this one has not taken over: objects with its label and without ours,
// which the cache does not hold. They are listed once in the life of the process, for all clusters.
type leftovers struct {
	mu     sync.Mutex
	listed map[types.NamespacedName][]metav1.PartialObjectMetadata // nil until listed
}

// of returns those of a cluster.
func (l *leftovers) of(ctx context.Context, live client.Reader, served capability.Set, cluster types.NamespacedName) ([]metav1.PartialObjectMetadata, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed == nil {
		listed, err := listLeftovers(ctx, live, append(prunable(served), bindingKind))
		if err != nil {
			return nil, err
		}
		l.listed = listed
	}
	return l.listed[cluster], nil
}

// done forgets those of a cluster, once they are dealt with.
func (l *leftovers) done(cluster types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.listed, cluster)
}

func listLeftovers(ctx context.Context, live client.Reader, kinds []schema.GroupVersionKind) (map[types.NamespacedName][]metav1.PartialObjectMetadata, error) {
	theirs, err := labels.NewRequirement(ray.LabelClusterName, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting by label: %w", err)
	}
	notOurs, err := labels.NewRequirement(names.OperatorLabel, selection.DoesNotExist, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting by label: %w", err)
	}
	selector := client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*theirs, *notOurs)}
	out := map[types.NamespacedName][]metav1.PartialObjectMetadata{}
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := live.List(ctx, list, selector)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // its API went a moment ago
		}
		if err != nil {
			return nil, fmt.Errorf("listing what the CodeFlare operator left of %s: %w", kind.Kind, err)
		}
		for _, object := range list.Items {
			object.SetGroupVersionKind(kind)
			cluster := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[ray.LabelClusterName]}
			if object.Namespace == "" {
				cluster.Namespace = object.Labels[ray.LabelClusterNamespace]
			}
			out[cluster] = append(out[cluster], object)
		}
	}
	return out, nil
}
