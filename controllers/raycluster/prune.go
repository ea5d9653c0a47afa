package raycluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// ownKinds are those of the objects in the namespace of a cluster that are always served.
var ownKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("Service"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	networkingv1.SchemeGroupVersion.WithKind("Ingress"), networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
}

// optionalKinds may come and go.
var optionalKinds = []schema.GroupVersionKind{capability.Route, capability.HTTPRoute, capability.BackendTLSPolicy, capability.Certificate}

// prunable are the kinds of which an object may become unwanted.
func prunable(served capability.Set) []schema.GroupVersionKind {
	return slices.DeleteFunc(slices.Concat(ownKinds, optionalKinds), func(kind schema.GroupVersionKind) bool {
		return slices.Contains(optionalKinds, kind) && !served.Has(kind)
	})
}

// prune removes what is not wanted, and with it what the CodeFlare operator made that is not wanted.
func (r *clusters) prune(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster, wanted apply.Desired) error {
	if err := r.applier.Prune(ctx, cluster, wanted, prunable(r.served()), nil); err != nil {
		return fmt.Errorf("removing what is not wanted: %w", err)
	}
	return r.removeLeftovers(ctx, cluster, c, wanted)
}
