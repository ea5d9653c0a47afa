package raycluster

// All of this is for clusters that the CodeFlare operator had before. It may go with version 1.0, if that cannot be upgraded to from it
// directly.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// removeLeftovers removes what the CodeFlare operator made for a cluster and is not wanted.
func (r *clusters) removeLeftovers(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, wanted apply.Desired) error {
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
		errs = append(errs, r.applier.DeleteOwned(ctx, cluster.GetUID(), object))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing what the CodeFlare operator left: %w", err)
	}
	r.leftovers.done(client.ObjectKeyFromObject(cluster))
	return nil
}

func isWanted(wanted apply.Desired, object *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(wanted, func(w apply.Object) bool {
		kind, name, err := w.Key()
		return err == nil && kind.Kind == object.Kind && name.Name == object.Name
	})
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
	selector, err := labels.Parse(raycluster.LabelClusterName + ",!" + names.OperatorLabel)
	if err != nil {
		return nil, fmt.Errorf("selecting by label: %w", err)
	}
	out := map[types.NamespacedName][]metav1.PartialObjectMetadata{}
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := live.List(ctx, list, client.MatchingLabelsSelector{Selector: selector})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue // its API went a moment ago
		}
		if err != nil {
			return nil, fmt.Errorf("listing what the CodeFlare operator left of %s: %w", kind.Kind, err)
		}
		for _, object := range list.Items {
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

// Names of the CodeFlare operator's webhooks. Our own are in objects of the same names, so that they take the place of
// the old ones; an apply leaves the entries of other managers in such an object all the same.
const (
	oldMutating   = "codeflare-operator-mutating-webhook-configuration"
	oldValidating = "codeflare-operator-validating-webhook-configuration"
	oldService    = "codeflare-operator-webhook-service"
)

// oldWebhooksAgain is the pause before entries are checked again whose Service is still there.
const oldWebhooksAgain = 10 * time.Minute

// oldWebhooks removes the entries that call the CodeFlare operator once its Service is gone: with the policy Fail they would
// refuse every RayCluster and AppWrapper. It is a manager Runnable of the leader, and ends when there are none.
type oldWebhooks struct {
	live   client.Reader
	writer client.Client
	clock  clock.Clock
	log    logr.Logger
}

// Start implements manager.Runnable. It never fails.
func (o *oldWebhooks) Start(ctx context.Context) error {
	for {
		left, err := o.clean(ctx)
		if err != nil && ctx.Err() == nil {
			o.log.Error(err, "Removing webhooks of the CodeFlare operator", "retryAfter", oldWebhooksAgain)
		}
		if err == nil && left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-o.clock.After(oldWebhooksAgain):
		}
	}
}

// clean removes dead entries, and returns the number of those that live.
func (o *oldWebhooks) clean(ctx context.Context) (int, error) {
	mutating, err := o.cleanOne(ctx, "MutatingWebhookConfiguration", oldMutating)
	validating, alsoErr := o.cleanOne(ctx, "ValidatingWebhookConfiguration", oldValidating)
	return mutating + validating, errors.Join(err, alsoErr)
}

// cleanOne removes dead entries of one object, unless it has changed meanwhile. It returns the number of the entries of the CodeFlare
// operator that live.
func (o *oldWebhooks) cleanOne(ctx context.Context, kind, name string) (alive int, err error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kind))
	if err := o.live.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	before, webhooks := object.DeepCopy(), nested.List(object.Object, "webhooks")
	var errs []error
	kept := slices.DeleteFunc(slices.Clone(webhooks), func(webhook any) bool {
		service := nested.Map(webhook, "clientConfig", "service")
		if service["name"] != oldService {
			return false
		}
		at := client.ObjectKey{Namespace: nested.String(service, "namespace"), Name: oldService}
		living, err := capability.GetMetadata(ctx, o.live, corev1.SchemeGroupVersion.WithKind("Service"), at)
		if living == nil && err == nil {
			return true
		}
		alive, errs = alive+1, append(errs, err)
		return false
	})
	if err := errors.Join(errs...); err != nil || len(kept) == len(webhooks) {
		return alive, err
	}
	object.Object["webhooks"] = kept
	if err := o.writer.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return alive, fmt.Errorf("removing dead webhooks of %s: %w", name, err)
	}
	o.log.Info("Removed webhooks that call the CodeFlare operator, whose Service is gone", "configuration", name, "webhooks", len(webhooks)-len(kept))
	return alive, nil
}
