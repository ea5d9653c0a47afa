// Package takeover deletes what the CodeFlare operator left: its objects of Ray clusters, and its webhooks. The manager registers it in one
// line, and works without it. Version 1.0 can delete it, unless it supports a direct upgrade from that operator.
package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// DeleteFunc deletes undesired objects of the CodeFlare operator for a cluster.
type DeleteFunc = func(ctx context.Context, cluster *unstructured.Unstructured, desired apply.Desired) error

// Add adds the clean-up of webhooks to the manager, and returns the function that deletes objects of the given kinds.
func Add(mgr ctrl.Manager, applier *apply.Applier, kinds func() []schema.GroupVersionKind, clk clock.Clock) (DeleteFunc, error) {
	o := &objects{live: mgr.GetAPIReader(), applier: applier, kinds: kinds}
	webhooks := &webhookCleaner{live: mgr.GetAPIReader(), writer: mgr.GetClient(), clock: clk, log: mgr.GetLogger().WithName("webhooks")}
	if err := mgr.Add(webhooks); err != nil {
		return nil, fmt.Errorf("adding the clean-up of webhooks to the manager: %w", err)
	}
	return o.delete, nil
}

// objects are those of the CodeFlare operator that are not adopted. The cache does not hold them, since they lack the label of this operator.
// They are listed once per process, for all clusters.
type objects struct {
	live    client.Reader
	applier *apply.Applier
	kinds   func() []schema.GroupVersionKind

	mu     sync.Mutex
	listed map[types.NamespacedName][]metav1.PartialObjectMetadata // nil until listed
}

// delete implements DeleteFunc.
func (o *objects) delete(ctx context.Context, cluster *unstructured.Unstructured, desired apply.Desired) error {
	legacy, err := o.of(ctx, client.ObjectKeyFromObject(cluster))
	if err != nil {
		return err
	}
	binding := raycluster.View(cluster.Object).Names().ClusterRoleBinding
	var errs []error
	for i := range legacy {
		object := &legacy[i]
		// Objects of cluster scope were listed by the labels with name and namespace of the cluster.
		belongs := object.Namespace == "" || metav1.IsControlledBy(object, cluster)
		if !belongs || object.Namespace != "" && isDesired(desired, object) || object.Name == binding {
			continue
		}
		errs = append(errs, o.applier.DeleteOwned(ctx, cluster.GetUID(), object))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing what the CodeFlare operator left: %w", err)
	}
	o.forget(client.ObjectKeyFromObject(cluster))
	return nil
}

func isDesired(desired apply.Desired, object *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(desired, func(d apply.Object) bool {
		kind, name, err := d.Key()
		return err == nil && kind.Kind == object.Kind && name.Name == object.Name
	})
}

// of returns the objects of a cluster.
func (o *objects) of(ctx context.Context, cluster types.NamespacedName) ([]metav1.PartialObjectMetadata, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listed == nil {
		listed, err := list(ctx, o.live, o.kinds())
		if err != nil {
			return nil, err
		}
		o.listed = listed
	}
	return o.listed[cluster], nil
}

// forget drops the objects of a cluster after their deletion.
func (o *objects) forget(cluster types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.listed, cluster)
}

func list(ctx context.Context, live client.Reader, kinds []schema.GroupVersionKind) (map[types.NamespacedName][]metav1.PartialObjectMetadata, error) {
	selector, err := labels.Parse(raycluster.LabelClusterName + ",!" + names.OperatorLabel)
	if err != nil {
		return nil, fmt.Errorf("selecting by label: %w", err)
	}
	out := map[types.NamespacedName][]metav1.PartialObjectMetadata{}
	for _, kind := range kinds {
		items := &metav1.PartialObjectMetadataList{}
		items.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := live.List(ctx, items, client.MatchingLabelsSelector{Selector: selector})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // the API was removed after discovery
		}
		if err != nil {
			return nil, fmt.Errorf("listing what the CodeFlare operator left of %s: %w", kind.Kind, err)
		}
		for _, object := range items.Items {
			object.SetGroupVersionKind(kind)
			cluster := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[raycluster.LabelClusterName]}
			if object.Namespace == "" {
				cluster.Namespace = object.Labels[raycluster.LabelClusterNamespace]
			}
			out[cluster] = append(out[cluster], object)
		}
	}
	return out, nil
}
