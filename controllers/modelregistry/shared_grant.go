package modelregistry

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// The catalog shared the grant of the original with registries. These are the names of its own objects.
const (
	catalogComponent = "modelcatalog"
	catalogGrantName = "allow-gateway-model-catalog"
	catalogRouteName = "model-catalog"
)

// removeSharedGrant removes the ReferenceGrant by which the original let HTTPRoutes lead to every Service of a namespace,
// databases too, when nothing in the namespace lives by it any more. Only while it is there does that cost a request.
func (r *registries) removeSharedGrant(ctx context.Context, m *v1beta1.ModelRegistry, found map[place]*metav1.PartialObjectMetadata, in Inputs) error {
	at := place{capability.ReferenceGrant.GroupKind(), types.NamespacedName{Namespace: m.Namespace, Name: sharedGrantName}}
	grant := found[at]
	if grant == nil {
		return nil
	}
	needed, err := r.registriesNeedSharedGrant(ctx, m.Namespace, in)
	if err == nil && !needed {
		needed, err = r.catalogNeedsSharedGrant(ctx, m.Namespace, in)
	}
	if err != nil || needed {
		return err
	}
	err = r.applier.Remove(ctx, m.UID, grant)
	if err == nil || apierrors.IsConflict(err) { // another one has the name
		delete(found, at)
		return nil
	}
	return err
}

// registriesNeedSharedGrant says whether a registry of a namespace has no grant of its own yet. Without gateway mode that
// matters to those only that are left as they are.
func (r *registries) registriesNeedSharedGrant(ctx context.Context, namespace string, in Inputs) (bool, error) {
	list := &v1beta1.ModelRegistryList{}
	if err := r.cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing model registries: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		paused, _ := names.Paused(m.Annotations)
		if m.DeletionTimestamp != nil || !in.gatewayMode() && !paused {
			continue
		}
		own, err := r.cachedGrant(ctx, namespace, grantName(m))
		if err != nil {
			return false, err
		}
		if own == nil || !metav1.IsControlledBy(own, m) {
			return true, nil
		}
	}
	return false, nil
}

// catalogNeedsSharedGrant says whether the catalog is published out of a namespace without a grant of its own.
func (r *registries) catalogNeedsSharedGrant(ctx context.Context, namespace string, in Inputs) (bool, error) {
	own, err := r.cachedGrant(ctx, namespace, catalogGrantName)
	if err != nil || own != nil || !in.HTTPRoutes {
		return false, err
	}
	route := wholeObject(capability.HTTPRoute)
	key := client.ObjectKey{Namespace: in.Gateway.RouteNamespace, Name: catalogRouteName}
	err = r.live.Get(ctx, key, route)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading HTTPRoute %s: %w", key, err)
	}
	return leadsTo(route, namespace), nil
}

// cachedGrant returns a ReferenceGrant that bears our label, nil where there is none.
func (r *registries) cachedGrant(ctx context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	grant := metadataOf(capability.ReferenceGrant)
	err := r.cached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, grant)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading metadata of ReferenceGrant %s/%s: %w", namespace, name, err)
	}
	return grant, nil
}

// leadsTo says whether an HTTPRoute has a backend in a namespace.
func leadsTo(route *unstructured.Unstructured, namespace string) bool {
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
	return slices.ContainsFunc(rules, func(rule any) bool {
		fields, _ := rule.(map[string]any)
		backends, _, _ := unstructured.NestedSlice(fields, "backendRefs")
		return slices.ContainsFunc(backends, func(backend any) bool {
			ref, _ := backend.(map[string]any)
			return ref["namespace"] == namespace
		})
	})
}

// besideCatalog leads objects of the catalog to the registries in its namespace, which may wait for it to have its own grant.
func (r *registries) besideCatalog() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		if !apply.IsOurs(o, catalogComponent) {
			return nil
		}
		namespace := o.GetLabels()[labelNamespace]
		if namespace == "" {
			namespace = o.GetNamespace()
		}
		return r.matching(ctx, func(m *v1beta1.ModelRegistry) bool { return m.Namespace == namespace })
	})
}
