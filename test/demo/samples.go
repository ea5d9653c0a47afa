package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

// webhookTimeout limits the retries of a sample while a webhook is unreachable.
const webhookTimeout = 30 * time.Second

// fieldOwner is the field manager of the demo.
const fieldOwner = "demo"

// readSamples builds the kustomization of the samples, which must not be empty.
func readSamples(dir string) ([]*unstructured.Unstructured, error) {
	samples, err := operator.Kustomize(dir)
	if err == nil && len(samples) == 0 {
		err = fmt.Errorf("there are no samples in %s", dir)
	}
	return samples, err
}

// apply applies samples. Namespaced samples without a namespace get the namespace of the manager.
func (d *demo) apply(ctx context.Context, env *environment, samples []*unstructured.Unstructured) error {
	var titles []string
	for _, sample := range samples {
		namespaced, err := env.client.IsObjectNamespaced(sample)
		if err != nil {
			return fmt.Errorf("applying sample %s: %w", title(sample), err)
		}
		if namespaced && sample.GetNamespace() == "" {
			sample.SetNamespace(env.namespace)
		}
		if err := env.applyOne(ctx, sample); err != nil {
			return fmt.Errorf("applying sample %s: %w", title(sample), err)
		}
		titles = append(titles, title(sample))
	}
	d.logf("%s applied: %s", d.samples, strings.Join(titles, ", "))
	return nil
}

// applyOne applies a sample. It retries until the API server can call the webhooks, because the API server observes the CA of a new manager
// with a delay.
func (env *environment) applyOne(ctx context.Context, sample *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyPollInterval, webhookTimeout, true, func(ctx context.Context) (bool, error) {
		desired := client.ApplyConfigurationFromUnstructured(sample.DeepCopy())
		last = env.client.Apply(ctx, desired, client.FieldOwner(fieldOwner), client.ForceOwnership)
		if apierrors.IsInternalError(last) && strings.Contains(last.Error(), "failed calling webhook") {
			return false, nil
		}
		return true, last
	})
	if wait.Interrupted(err) {
		return last
	}
	return err
}

// title returns the kind, namespace and name of an object for messages.
func title(object client.Object) string {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetObjectKind().GroupVersionKind().Kind + " " + name
}
