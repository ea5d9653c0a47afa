package raycluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// Names of the CodeFlare operator's webhooks. Our own stand in objects of the same names, so that they take the place of
// the old ones; an apply leaves the entries of other managers in such an object all the same.
const (
	oldMutating   = "codeflare-operator-mutating-webhook-configuration"
	oldValidating = "codeflare-operator-validating-webhook-configuration"
	oldService    = "codeflare-operator-webhook-service"
)

// oldWebhooksAgain is the pause before entries are looked at again whose Service is still there.
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
	m, v := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	var left int
	var errs []error
	for _, object := range []struct {
		client.Object
		name  string
		calls func() []admissionv1.WebhookClientConfig
	}{
		{m, oldMutating, func() []admissionv1.WebhookClientConfig {
			return collect(m.Webhooks, func(w admissionv1.MutatingWebhook) admissionv1.WebhookClientConfig { return w.ClientConfig })
		}},
		{v, oldValidating, func() []admissionv1.WebhookClientConfig {
			return collect(v.Webhooks, func(w admissionv1.ValidatingWebhook) admissionv1.WebhookClientConfig { return w.ClientConfig })
		}},
	} {
		err := o.live.Get(ctx, client.ObjectKey{Name: object.name}, object.Object)
		if apierrors.IsNotFound(err) {
			continue
		}
		alive := 0
		if err == nil {
			alive, err = o.cleanOne(ctx, object.Object, object.calls())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", object.name, err))
		}
		left += alive
	}
	return left, errors.Join(errs...)
}

func collect[T any](webhooks []T, of func(T) admissionv1.WebhookClientConfig) []admissionv1.WebhookClientConfig {
	out := make([]admissionv1.WebhookClientConfig, 0, len(webhooks))
	for _, w := range webhooks {
		out = append(out, of(w))
	}
	return out
}

// cleanOne removes dead entries of one object, the last first, so that the others keep their places; the patch fails when
// the list moved meanwhile. It returns the number of the entries of the CodeFlare operator that live.
func (o *oldWebhooks) cleanOne(ctx context.Context, object client.Object, calls []admissionv1.WebhookClientConfig) (int, error) {
	steps := []author.Operation{{Operation: "test", Path: "/metadata/resourceVersion", Value: object.GetResourceVersion()}}
	alive := 0
	for i := len(calls) - 1; i >= 0; i-- {
		service := calls[i].Service
		if service == nil || service.Name != oldService {
			continue
		}
		there, err := o.exists(ctx, types.NamespacedName{Namespace: service.Namespace, Name: service.Name})
		if err != nil {
			return alive, err
		}
		if there {
			alive++
			continue
		}
		steps = append(steps, author.Operation{Operation: "remove", Path: fmt.Sprintf("/webhooks/%d", i)})
	}
	if len(steps) == 1 {
		return alive, nil
	}
	patch, err := json.Marshal(steps)
	if err != nil {
		return alive, fmt.Errorf("encoding the patch: %w", err)
	}
	if err := o.writer.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return alive, fmt.Errorf("removing dead webhooks: %w", err)
	}
	o.log.Info("Removed webhooks that call the CodeFlare operator, whose Service is gone", "configuration", object.GetName(), "webhooks", len(steps)-1)
	return alive, nil
}

func (o *oldWebhooks) exists(ctx context.Context, name types.NamespacedName) (bool, error) {
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	err := o.live.Get(ctx, name, head)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
