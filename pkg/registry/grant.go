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
	"k8s.io/utils/ptr"
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
func DeleteSharedGrant(ctx context.Context, live client.Reader, applier *apply.Applier, forOwner types.UID, namespace string) (
	settled bool, err error,
) {
	settled = true
	name := types.NamespacedName{Namespace: namespace, Name: SharedGrantName}
	err = applier.DeleteIf(ctx, forOwner, capability.ReferenceGrant, name, func(grant *metav1.PartialObjectMetadata) (bool, error) {
		if grant.Labels["app.kubernetes.io/created-by"] != "model-registry-operator" {
			return false, nil
		}
		needed, err := needsSharedGrant(ctx, live, namespace)
		settled = err == nil && !needed
		return settled, err
	})
	if apierrors.IsConflict(err) { // another one has the name
		return true, nil
	}
	return settled && err == nil, err
}

// way is how an HTTPRoute of a namespace reaches a Service; without a name every Service.
type backendReference struct{ from, service string }

// needsSharedGrant reports whether an HTTPRoute, of whichever namespace, leads to a Service that no other grant opens to it.
func needsSharedGrant(ctx context.Context, live client.Reader, namespace string) (bool, error) {
	needed, granted := sets.New[backendReference](), sets.New[backendReference]()
	err := forEach(ctx, live, capability.HTTPRoute, "", func(route *gatewayv1.HTTPRoute) { addBackends(needed, route, namespace) })
	if err != nil || needed.Len() == 0 {
		return false, err
	}
	err = forEach(ctx, live, capability.ReferenceGrant, namespace, func(grant *gatewayv1beta1.ReferenceGrant) { addGranted(granted, grant) })
	for w := range needed {
		if !granted.HasAny(w, backendReference{from: w.from}) {
			return true, err
		}
	}
	return false, err
}

// addBackends adds how an HTTPRoute leads to Services of another namespace than its own.
func addBackends(needed sets.Set[backendReference], route *gatewayv1.HTTPRoute, namespace string) {
	for _, rule := range route.Spec.Rules {
		for _, backend := range rule.BackendRefs {
			if backend.Namespace != nil && string(*backend.Namespace) == namespace && route.Namespace != namespace {
				needed.Insert(backendReference{route.Namespace, string(backend.Name)})
			}
		}
	}
}

// addGranted adds what a grant opens, other than the shared one.
func addGranted(granted sets.Set[backendReference], grant *gatewayv1beta1.ReferenceGrant) {
	if grant.Name == SharedGrantName {
		return
	}
	for _, from := range grant.Spec.From {
		for _, to := range grant.Spec.To {
			if from.Kind == "HTTPRoute" && to.Kind == "Service" {
				granted.Insert(backendReference{string(from.Namespace), string(ptr.Deref(to.Name, ""))})
			}
		}
	}
}

// each reads the objects of a kind, "" for all namespaces; one that is not served has none.
func forEach[T any](ctx context.Context, live client.Reader, kind schema.GroupVersionKind, namespace string, read func(*T)) error {
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
