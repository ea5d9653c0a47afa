package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// Names of the CodeFlare operator's webhooks. The configurations of this operator have the same names in order to replace them, but an
// apply leaves the webhooks of other field managers in the object.
const (
	mutatingConfiguration   = "codeflare-operator-mutating-webhook-configuration"
	validatingConfiguration = "codeflare-operator-validating-webhook-configuration"
	webhookService          = "codeflare-operator-webhook-service"
)

// webhookInterval is the interval of checking webhooks whose Service still exists.
const webhookInterval = 10 * time.Minute

// webhookCleaner removes the webhooks of the CodeFlare operator after its Service is deleted: with failurePolicy Fail they would reject
// every RayCluster and AppWrapper. It is a manager Runnable of the leader, and returns when none is left.
type webhookCleaner struct {
	live   client.Reader
	writer client.Client
	clock  clock.Clock
	log    logr.Logger
}

// Start implements manager.Runnable. It never fails.
func (w *webhookCleaner) Start(ctx context.Context) error {
	for {
		remaining, err := w.clean(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Error(err, "Removing webhooks of the CodeFlare operator", "retryAfter", webhookInterval)
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

// clean removes webhooks without a Service and returns the number of those with one.
func (w *webhookCleaner) clean(ctx context.Context) (int, error) {
	mutating, err := w.cleanConfiguration(ctx, "MutatingWebhookConfiguration", mutatingConfiguration)
	validating, validatingErr := w.cleanConfiguration(ctx, "ValidatingWebhookConfiguration", validatingConfiguration)
	return mutating + validating, errors.Join(err, validatingErr)
}

// cleanConfiguration removes the webhooks without a Service from one configuration, with optimistic locking. It returns the number of
// webhooks of the CodeFlare operator with a Service.
func (w *webhookCleaner) cleanConfiguration(ctx context.Context, kind, name string) (remaining int, err error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kind))
	if err := w.live.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
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
		existing, err := capability.GetMetadata(ctx, w.live, corev1.SchemeGroupVersion.WithKind("Service"), key)
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
		return remaining, fmt.Errorf("removing dead webhooks of %s: %w", name, err)
	}
	w.log.Info("Removed webhooks that call the CodeFlare operator, whose Service is gone", "configuration", name, "webhooks", len(webhooks)-len(kept))
	return remaining, nil
}
