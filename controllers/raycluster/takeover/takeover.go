// Package takeover deletes leftovers of the CodeFlare operator: objects of Ray clusters, and webhooks. The manager works without this
// package: it can be deleted in version 1.0, unless that version supports direct upgrades from the CodeFlare operator.
package takeover

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

// New adds the clean-up of webhooks to the manager, and returns the take-over of objects of the given kinds.
func New(mgr ctrl.Manager, applier *apply.Applier, kinds func() []schema.GroupVersionKind, clk clock.Clock) (takeover.Interface[*unstructured.Unstructured], error) {
	webhooks := &webhookCleaner{apiReader: mgr.GetAPIReader(), writer: mgr.GetClient(), clock: clk, log: mgr.GetLogger().WithName("webhooks")}
	if err := mgr.Add(webhooks); err != nil {
		return nil, fmt.Errorf("adding the clean-up of webhooks to the manager: %w", err)
	}
	return &objectCleaner{apiReader: mgr.GetAPIReader(), applier: applier, kinds: kinds}, nil
}

// objectCleaner deletes objects of the CodeFlare operator that are not adopted. The cache does not hold them, since they lack the label of
// this operator. They are listed once per process, for all clusters.
type objectCleaner struct {
	takeover.None[*unstructured.Unstructured]

	apiReader client.Reader
	applier   *apply.Applier
	kinds     func() []schema.GroupVersionKind

	mu     sync.Mutex
	listed map[types.NamespacedName][]metav1.PartialObjectMetadata // nil until listed
}

// Prune implements takeover.Interface.
func (o *objectCleaner) Prune(ctx context.Context, cluster *unstructured.Unstructured, desired apply.Desired) error {
	legacy, err := o.legacyObjects(ctx, client.ObjectKeyFromObject(cluster))
	if err != nil {
		return err
	}
	binding := raycluster.View(cluster.Object).Names().ClusterRoleBinding
	var errs []error
	for i := range legacy {
		object := &legacy[i]
		// Cluster-scoped objects were selected by the labels with name and namespace of the cluster.
		isOwned := object.Namespace == "" || metav1.IsControlledBy(object, cluster)
		if !isOwned || object.Namespace != "" && isDesired(desired, object) || object.Name == binding {
			continue
		}
		errs = append(errs, o.applier.DeleteOwned(ctx, cluster.GetUID(), object))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing objects of the CodeFlare operator: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.listed, client.ObjectKeyFromObject(cluster))
	return nil
}

func isDesired(desired apply.Desired, object *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(desired, func(d apply.Object) bool {
		key := d.Key()
		return key.Kind == object.Kind && key.Name == object.Name
	})
}

// legacyObjects returns the legacy objects of a cluster. The first call lists those of all clusters.
func (o *objectCleaner) legacyObjects(ctx context.Context, cluster types.NamespacedName) ([]metav1.PartialObjectMetadata, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listed == nil {
		listed, err := listByCluster(ctx, o.apiReader, o.kinds())
		if err != nil {
			return nil, err
		}
		o.listed = listed
	}
	return o.listed[cluster], nil
}

func listByCluster(ctx context.Context, apiReader client.Reader, kinds []schema.GroupVersionKind) (map[types.NamespacedName][]metav1.PartialObjectMetadata, error) {
	objects, err := takeover.List(ctx, apiReader, kinds, raycluster.LabelClusterName)
	if err != nil {
		return nil, err
	}
	byCluster := map[types.NamespacedName][]metav1.PartialObjectMetadata{}
	for _, object := range objects {
		cluster := types.NamespacedName{Namespace: object.Namespace, Name: object.Labels[raycluster.LabelClusterName]}
		if object.Namespace == "" {
			cluster.Namespace = object.Labels[raycluster.LabelClusterNamespace]
		}
		byCluster[cluster] = append(byCluster[cluster], object)
	}
	return byCluster, nil
}

// Names of the webhook configurations and the Service of the CodeFlare operator. The configurations of this operator have the same names in
// order to replace those, but an apply leaves the webhooks of other field managers in the object.
const (
	mutatingConfiguration   = "codeflare-operator-mutating-webhook-configuration"
	validatingConfiguration = "codeflare-operator-validating-webhook-configuration"
	webhookService          = "codeflare-operator-webhook-service"
)

// webhookInterval is the interval between checks of the webhooks.
const webhookInterval = 10 * time.Minute

// webhookCleaner removes the webhooks of the CodeFlare operator after its Service is deleted: with failurePolicy Fail they would reject
// every RayCluster and AppWrapper. It is a manager Runnable of the leader, and returns when no such webhook remains.
type webhookCleaner struct {
	apiReader client.Reader
	writer    client.Client
	clock     clock.Clock
	log       logr.Logger
}

// Start implements manager.Runnable. It never fails.
func (w *webhookCleaner) Start(ctx context.Context) error {
	for {
		remaining, err := w.clean(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Error(err, "Removing webhooks of the CodeFlare operator failed; retrying", "after", webhookInterval)
		}
		if err == nil && remaining == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.clock.After(webhookInterval):
		}
	}
}

// clean removes the webhooks of the CodeFlare operator whose Service does not exist, and returns the number of those that remain.
func (w *webhookCleaner) clean(ctx context.Context) (int, error) {
	mutating, err := w.cleanConfiguration(ctx, "MutatingWebhookConfiguration", mutatingConfiguration)
	validating, validatingErr := w.cleanConfiguration(ctx, "ValidatingWebhookConfiguration", validatingConfiguration)
	return mutating + validating, errors.Join(err, validatingErr)
}

// cleanConfiguration is clean for one configuration. It patches with optimistic locking, and removes nothing if a Service cannot be read.
func (w *webhookCleaner) cleanConfiguration(ctx context.Context, kind, name string) (remaining int, err error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kind))
	if err := w.apiReader.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	original, webhooks := object.DeepCopy(), nested.List(object.Object, "webhooks")
	var errs []error
	kept := slices.DeleteFunc(slices.Clone(webhooks), func(webhook any) bool {
		service := nested.Map(webhook, "clientConfig", "service")
		if service["name"] != webhookService {
			return false
		}
		key := client.ObjectKey{Namespace: nested.String(service, "namespace"), Name: webhookService}
		existing, err := objectmeta.Get(ctx, w.apiReader, corev1.SchemeGroupVersion.WithKind("Service"), key)
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
	if err := w.writer.Patch(ctx, object, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})); err != nil {
		return remaining, fmt.Errorf("removing webhooks whose Service does not exist from %s: %w", name, err)
	}
	w.log.Info("Removed webhooks of the CodeFlare operator, whose Service does not exist", "configuration", name, "webhooks", len(webhooks)-len(kept))
	return remaining, nil
}
