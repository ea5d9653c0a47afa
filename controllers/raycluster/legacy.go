package raycluster

// This file migrates clusters of the CodeFlare operator. Version 1.0 can delete it, unless it supports a direct upgrade from that operator.

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

// deleteLegacyObjects deletes undesired objects of the CodeFlare operator.
func (r *clusterReconciler) deleteLegacyObjects(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, desired apply.Desired) error {
	legacy, err := r.legacyObjects.of(ctx, r.live, r.served(), client.ObjectKeyFromObject(cluster))
	if err != nil {
		return err
	}
	var errs []error
	for i := range legacy {
		object := &legacy[i]
		belongs := metav1.IsControlledBy(object, cluster) || object.Namespace == "" && hasClusterLabels(object, c)
		if !belongs || object.Namespace != "" && isDesired(desired, object) || object.Name == c.Names().ClusterRoleBinding {
			continue
		}
		errs = append(errs, r.applier.DeleteOwned(ctx, cluster.GetUID(), object))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing objects of the CodeFlare operator: %w", err)
	}
	r.legacyObjects.forget(client.ObjectKeyFromObject(cluster))
	return nil
}

func isDesired(desired apply.Desired, object *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(desired, func(d apply.Object) bool {
		kind, name, err := d.Key()
		return err == nil && kind.Kind == object.Kind && name.Name == object.Name
	})
}

// legacyObjects are objects of the CodeFlare operator that are not adopted. The cache does not hold them, since
// they lack the label of this operator. They are listed once per process, for all clusters.
type legacyObjects struct {
	mu     sync.Mutex
	listed map[types.NamespacedName][]metav1.PartialObjectMetadata // nil until listed
}

// of returns the objects of a cluster.
func (l *legacyObjects) of(ctx context.Context, live client.Reader, served capability.Set, cluster types.NamespacedName) ([]metav1.PartialObjectMetadata, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed == nil {
		listed, err := listLegacyObjects(ctx, live, append(prunedKinds(served), bindingKind))
		if err != nil {
			return nil, err
		}
		l.listed = listed
	}
	return l.listed[cluster], nil
}

// forget drops the objects of a cluster after their deletion.
func (l *legacyObjects) forget(cluster types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.listed, cluster)
}

func listLegacyObjects(ctx context.Context, live client.Reader, kinds []schema.GroupVersionKind) (map[types.NamespacedName][]metav1.PartialObjectMetadata, error) {
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
			continue // the API was removed after discovery
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

// Names of the CodeFlare operator's webhooks. The configurations of this operator have the same names in order to replace them, but an
// apply leaves the webhooks of other field managers in the object.
const (
	legacyMutatingConfiguration   = "codeflare-operator-mutating-webhook-configuration"
	legacyValidatingConfiguration = "codeflare-operator-validating-webhook-configuration"
	legacyWebhookService          = "codeflare-operator-webhook-service"
)

// legacyWebhookInterval is the interval of checking webhooks whose Service still exists.
const legacyWebhookInterval = 10 * time.Minute

// legacyWebhookCleaner removes the webhooks of the CodeFlare operator after its Service is deleted: with failurePolicy Fail they would reject
// every RayCluster and AppWrapper. It is a manager Runnable of the leader, and returns when none is left.
type legacyWebhookCleaner struct {
	live   client.Reader
	writer client.Client
	clock  clock.Clock
	log    logr.Logger
}

// Start implements manager.Runnable. It never fails.
func (o *legacyWebhookCleaner) Start(ctx context.Context) error {
	for {
		remaining, err := o.clean(ctx)
		if err != nil && ctx.Err() == nil {
			o.log.Error(err, "Removing webhooks of the CodeFlare operator", "retryAfter", legacyWebhookInterval)
		}
		if err == nil && remaining == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-o.clock.After(legacyWebhookInterval):
		}
	}
}

// clean removes webhooks without a Service and returns the number of those with one.
func (o *legacyWebhookCleaner) clean(ctx context.Context) (int, error) {
	mutating, err := o.cleanConfiguration(ctx, "MutatingWebhookConfiguration", legacyMutatingConfiguration)
	validating, validatingErr := o.cleanConfiguration(ctx, "ValidatingWebhookConfiguration", legacyValidatingConfiguration)
	return mutating + validating, errors.Join(err, validatingErr)
}

// cleanConfiguration removes the webhooks without a Service from one configuration, with optimistic locking. It returns the number of
// webhooks of the CodeFlare operator with a Service.
func (o *legacyWebhookCleaner) cleanConfiguration(ctx context.Context, kind, name string) (remaining int, err error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kind))
	if err := o.live.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	original, webhooks := object.DeepCopy(), nested.List(object.Object, "webhooks")
	var errs []error
	kept := slices.DeleteFunc(slices.Clone(webhooks), func(webhook any) bool {
		service := nested.Map(webhook, "clientConfig", "service")
		if service["name"] != legacyWebhookService {
			return false
		}
		key := client.ObjectKey{Namespace: nested.String(service, "namespace"), Name: legacyWebhookService}
		existing, err := capability.GetMetadata(ctx, o.live, corev1.SchemeGroupVersion.WithKind("Service"), key)
		if existing == nil && err == nil {
			return true
		}
		remaining, errs = remaining+1, append(errs, err)
		return false
	})
	if err := errors.Join(errs...); err != nil || len(kept) == len(webhooks) {
		return remaining, err
	}
	object.Object["webhooks"] = kept
	if err := o.writer.Patch(ctx, object, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})); err != nil {
		return remaining, fmt.Errorf("removing dead webhooks of %s: %w", name, err)
	}
	o.log.Info("Removed webhooks of the CodeFlare operator, whose Service does not exist", "configuration", name, "webhooks", len(webhooks)-len(kept))
	return remaining, nil
}
