package servers

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

// This file is about the legacy operator of registries and the catalog. It may be removed in release 1.0: migration from that operator then
// needs an earlier release first.

const (
	// LegacyManager is the field manager of the legacy operator: the default, which is the name of the binary.
	LegacyManager = "manager"
	// LegacyCopyAnnotation is the annotation in which the legacy operator stored a copy of each object, including passwords.
	LegacyCopyAnnotation = "banzaicloud.com/last-applied"
	// SharedGrantName is the legacy ReferenceGrant shared by the registries and the catalog of a namespace. It names no Service, so it
	// also allows HTTPRoutes to databases.
	SharedGrantName = "allow-gateway-httproutes"
)

// DeleteSharedGrant deletes the shared ReferenceGrant unless an HTTPRoute needs it for a Service without its own grant. done is true if
// no later call is needed.
func DeleteSharedGrant(ctx context.Context, apiReader client.Reader, applier *apply.Applier, forOwner types.UID, namespace string) (
	done bool, err error,
) {
	done = true
	name := types.NamespacedName{Namespace: namespace, Name: SharedGrantName}
	err = applier.DeleteIf(ctx, forOwner, capability.ReferenceGrant, name, func(grant *metav1.PartialObjectMetadata) (bool, error) {
		if grant.Labels["app.kubernetes.io/created-by"] != "model-registry-operator" {
			return false, nil
		}
		needed, err := needsSharedGrant(ctx, apiReader, namespace)
		done = err == nil && !needed
		return done, err
	})
	if apierrors.IsConflict(err) { // an object with another UID has the name
		return true, nil
	}
	return done && err == nil, err
}

// backendReference is a reference from a namespace of HTTPRoutes to a Service. An empty service means all Services.
type backendReference struct{ from, service string }

// needsSharedGrant reports whether an HTTPRoute of any namespace refers to a Service that no other grant allows.
func needsSharedGrant(ctx context.Context, apiReader client.Reader, namespace string) (bool, error) {
	needed, granted := sets.New[backendReference](), sets.New[backendReference]()
	err := forEach(ctx, apiReader, capability.HTTPRoute, "", func(route *gatewayv1.HTTPRoute) { addNeededReferences(needed, route, namespace) })
	if err != nil || needed.Len() == 0 {
		return false, err
	}
	err = forEach(ctx, apiReader, capability.ReferenceGrant, namespace, func(grant *gatewayv1beta1.ReferenceGrant) { addGrantedReferences(granted, grant) })
	for reference := range needed {
		if !granted.HasAny(reference, backendReference{from: reference.from}) {
			return true, err
		}
	}
	return false, err
}

// addNeededReferences adds the references of an HTTPRoute to Services of the namespace, if the route is in another one.
func addNeededReferences(needed sets.Set[backendReference], route *gatewayv1.HTTPRoute, namespace string) {
	for _, rule := range route.Spec.Rules {
		for _, backend := range rule.BackendRefs {
			if backend.Namespace != nil && string(*backend.Namespace) == namespace && route.Namespace != namespace {
				needed.Insert(backendReference{route.Namespace, string(backend.Name)})
			}
		}
	}
}

// addGrantedReferences adds the references allowed by a grant other than the shared one.
func addGrantedReferences(granted sets.Set[backendReference], grant *gatewayv1beta1.ReferenceGrant) {
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

// forEach calls fn for each object of a kind in a namespace. An empty namespace means all namespaces. An API that is not served has no
// objects.
func forEach[T any](ctx context.Context, apiReader client.Reader, kind schema.GroupVersionKind, namespace string, fn func(*T)) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := apiReader.List(ctx, list, client.InNamespace(namespace))
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
		fn(typed)
	}
	return nil
}
