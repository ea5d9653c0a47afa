package fakeapi

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// Scheme returns a scheme of the Kubernetes kinds that the operator writes or reads, and of the given types. Each write of the fake client
// iterates over all kinds of its scheme, so the full scheme of client-go would dominate the time of a test.
func Scheme(types ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{
		appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
	}, types...) {
		utilruntime.Must(add(scheme))
	}
	// The fake client registers an unknown kind in the form of its first request, and drops the spec if that form is PartialObjectMetadata.
	for _, kind := range []schema.GroupVersionKind{capability.Route, capability.HTTPRoute, capability.Certificate} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	}
	return scheme
}

// ListMetadata is an interceptor of the fake client that lists metadata, including metadata of kinds that the scheme does not contain.
func ListMetadata(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
	metadata, ok := l.(*metav1.PartialObjectMetadataList)
	if !ok || c.Scheme().Recognizes(metadata.GroupVersionKind()) {
		return c.List(ctx, l, opts...)
	}
	full := &unstructured.UnstructuredList{}
	full.SetGroupVersionKind(metadata.GroupVersionKind())
	if err := c.List(ctx, full, opts...); err != nil {
		return err
	}
	for i := range full.Items {
		item := metav1.PartialObjectMetadata{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(full.Items[i].Object, &item); err != nil {
			return err
		}
		metadata.Items = append(metadata.Items, item)
	}
	return nil
}
