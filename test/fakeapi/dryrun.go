package fakeapi

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Apply sends an apply request. On a dry run, the object must exist, and the stored object stays unchanged, unlike with the fake client.
func Apply(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	var options client.ApplyOptions
	options.ApplyOptions(opts)
	if len(options.DryRun) == 0 {
		return c.Apply(ctx, config, opts...)
	}
	desired, ok := config.(client.Object)
	if !ok {
		return errors.New("only an unstructured object can be applied with a dry run")
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(desired.GetObjectKind().GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(desired), live); err != nil {
		return err
	}
	copied := fake.NewClientBuilder().WithScheme(c.Scheme()).WithRESTMapper(c.RESTMapper()).WithObjects(live).Build()
	if err := copied.Apply(ctx, config, opts...); err != nil {
		return err
	}
	desired.SetResourceVersion(live.GetResourceVersion())
	return nil
}
