package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// This file removes what the original operator left behind, and may go with release 1.0: who comes from the original has to run an
// earlier release first.

// SharedGrantName is the ReferenceGrant that registries and the catalog of a namespace shared under the original. It named no Service, and
// so let HTTPRoutes lead to databases too.
const SharedGrantName = "allow-gateway-httproutes"

// RemoveSharedGrant removes it from a namespace unless an HTTPRoute leads to a Service there that no other grant names: the registry or
// catalog that is the last to get a grant of its own removes it. It reports whether it is settled, so that it need not be looked for again.
func RemoveSharedGrant(ctx context.Context, live client.Reader, applier *apply.Applier, forOwner types.UID, namespace, routes string) (
	settled bool, err error,
) {
	settled = true
	name := types.NamespacedName{Namespace: namespace, Name: SharedGrantName}
	err = applier.RemoveNamed(ctx, forOwner, capability.ReferenceGrant, name, func(grant *metav1.PartialObjectMetadata) (bool, error) {
		if grant.Labels["app.kubernetes.io/created-by"] != "model-registry-operator" {
			return false, nil
		}
		led, err := ledTo(ctx, live, namespace, routes)
		if err != nil || led.Len() == 0 {
			return err == nil, err
		}
		granted, err := grantedIn(ctx, live, namespace)
		settled = err == nil && granted.IsSuperset(led)
		return settled, err
	})
	if apierrors.IsConflict(err) { // another one has the name
		return true, nil
	}
	return settled && err == nil, err
}

// ledTo are the Services of a namespace to which HTTPRoutes of another one lead.
func ledTo(ctx context.Context, live client.Reader, namespace, routes string) (sets.Set[string], error) {
	led := sets.New[string]()
	err := each(ctx, live, capability.HTTPRoute, routes, func(route *gatewayv1.HTTPRoute) {
		for _, rule := range route.Spec.Rules {
			for _, backend := range rule.BackendRefs {
				if backend.Namespace != nil && string(*backend.Namespace) == namespace {
					led.Insert(string(backend.Name))
				}
			}
		}
	})
	return led, err
}

// grantedIn are the Services that the grants of a namespace name.
func grantedIn(ctx context.Context, live client.Reader, namespace string) (sets.Set[string], error) {
	granted := sets.New[string]()
	err := each(ctx, live, capability.ReferenceGrant, namespace, func(grant *gatewayv1beta1.ReferenceGrant) {
		for _, to := range grant.Spec.To {
			if to.Name != nil {
				granted.Insert(string(*to.Name))
			}
		}
	})
	return granted, err
}

// each reads the objects of a kind in a namespace; one that is not served has none.
func each[T any](ctx context.Context, live client.Reader, kind schema.GroupVersionKind, namespace string, read func(*T)) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := live.List(ctx, list, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s objects: %w", kind.Kind, err)
	}
	for i := range list.Items {
		typed, err := resources.Decode[T](&list.Items[i])
		if err != nil {
			return err
		}
		read(typed)
	}
	return nil
}
