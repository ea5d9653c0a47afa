package fakeapi

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Apply sends an apply request for an object that exists. Unlike the fake client, it leaves the object unchanged on a dry run.
func Apply(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	var options client.ApplyOptions
	options.ApplyOptions(opts)
	if len(options.DryRun) == 0 {
		return c.Apply(ctx, config, opts...)
	}
	want, ok := config.(client.Object)
	if !ok {
		return errors.New("dry runs are for unstructured objects here")
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(want), live); err != nil {
		return err
	}
	trial := fake.NewClientBuilder().WithScheme(c.Scheme()).WithRESTMapper(c.RESTMapper()).WithObjects(live).Build()
	if err := trial.Apply(ctx, config, opts...); err != nil {
		return err
	}
	want.SetResourceVersion(live.GetResourceVersion())
	return nil
}
