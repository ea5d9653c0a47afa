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

// webhookPatience is how long a sample is tried again while a webhook cannot be called.
const webhookPatience = 30 * time.Second

// fieldOwner is the field manager of everything that the demo writes.
const fieldOwner = "demo"

// readSamples builds the kustomization of the samples; an empty one is an error.
func readSamples(dir string) ([]*unstructured.Unstructured, error) {
	samples, err := operator.Kustomize(dir)
	if err == nil && len(samples) == 0 {
		err = fmt.Errorf("there are no samples in %s", dir)
	}
	return samples, err
}

// apply writes samples; those that name no namespace and need one go to that of the manager.
func (d *demo) apply(ctx context.Context, w *environment, samples []*unstructured.Unstructured) error {
	var titles []string
	for _, sample := range samples {
		namespaced, err := w.client.IsObjectNamespaced(sample)
		if err != nil {
			return fmt.Errorf("applying sample %s: %w", title(sample), err)
		}
		if namespaced && sample.GetNamespace() == "" {
			sample.SetNamespace(w.namespace)
		}
		if err := w.applyOne(ctx, sample); err != nil {
			return fmt.Errorf("applying sample %s: %w", title(sample), err)
		}
		titles = append(titles, title(sample))
	}
	d.say("%s applied: %s", d.samples, strings.Join(titles, ", "))
	return nil
}

// applyOne writes a sample. A manager that has just got ready needs a moment to tell the API server whom to trust, and until
// then its webhooks cannot be called.
func (w *environment) applyOne(ctx context.Context, sample *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyPoll, webhookPatience, true, func(ctx context.Context) (bool, error) {
		wanted := client.ApplyConfigurationFromUnstructured(sample.DeepCopy())
		last = w.client.Apply(ctx, wanted, client.FieldOwner(fieldOwner), client.ForceOwnership)
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

// title names an object for people.
func title(object client.Object) string {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetObjectKind().GroupVersionKind().Kind + " " + name
}
