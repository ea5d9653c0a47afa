package main

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

// fieldOwner is the field manager of everything that the demo writes.
const fieldOwner = "demo"

// readSamples builds the kustomization of the samples; an empty one is an error.
func readSamples(ctx context.Context, dir string) ([]*unstructured.Unstructured, error) {
	samples, err := operator.Kustomize(ctx, dir)
	if err == nil && len(samples) == 0 {
		err = fmt.Errorf("there are no samples in %s", dir)
	}
	return samples, err
}

// apply writes the samples; those that name no namespace and need one go to that of the manager.
func (d *demo) apply(ctx context.Context, w *world) error {
	var titles []string
	for _, sample := range w.samples {
		namespaced, err := w.client.IsObjectNamespaced(sample)
		if err != nil {
			return fmt.Errorf("applying sample %s: %w", title(sample), err)
		}
		if namespaced && sample.GetNamespace() == "" {
			sample.SetNamespace(w.namespace)
		}
		wanted := client.ApplyConfigurationFromUnstructured(sample.DeepCopy())
		if err := w.client.Apply(ctx, wanted, client.FieldOwner(fieldOwner), client.ForceOwnership); err != nil {
			return fmt.Errorf("applying sample %s: %w", title(sample), err)
		}
		titles = append(titles, title(sample))
	}
	d.say("%s applied: %s", d.samples, strings.Join(titles, ", "))
	return nil
}

// title names an object for people.
func title(object client.Object) string {
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetObjectKind().GroupVersionKind().Kind + " " + name
}
