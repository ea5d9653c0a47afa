package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// This file removes what the original operator left behind, and may go with release 1.0: who comes from the original has to run an
// earlier release first.

// olderConditions are those of releases before this one, which are not set any more.
var olderConditions = []string{"OAuthProxyAvailable", "IstioAvailable", "GatewayAvailable"}

func dropOlderConditions(_ context.Context, m *v1beta1.ModelRegistry) error {
	for _, kind := range olderConditions {
		conditions.Remove(&m.Status.Conditions, kind)
	}
	if m.Spec.KubeRBACProxy == nil {
		conditions.Remove(&m.Status.Conditions, ConditionProxy)
	}
	return nil
}

// leftovers are the objects of the original that do not bear our labels, by namespace. They are cached for the life of the
// process, because nothing makes more of them. What is remembered may have been adopted since, so it is read again before it is
// deleted.
type leftovers struct {
	mu         sync.Mutex
	namespaces map[string]map[place]*metav1.PartialObjectMetadata
}

// removeLeftovers removes what the original made under names that its releases used and that are not wanted.
func (r *registries) removeLeftovers(ctx context.Context, m *v1beta1.ModelRegistry, wanted map[place]bool, in resources.Inputs) error {
	l := &r.leftovers
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.namespaces[m.Namespace]
	if !ok {
		var err error
		if found, err = r.lookBack(ctx, m.Namespace, in); err != nil {
			return err
		}
		if l.namespaces == nil {
			l.namespaces = map[string]map[place]*metav1.PartialObjectMetadata{}
		}
		l.namespaces[m.Namespace] = found
	}
	var errs []error
	for _, at := range olderPlaces(m, r.effective(m).Gateway.RouteNamespace) {
		object := found[at]
		if object == nil || wanted[at] || !leftBy(object, m) {
			continue
		}
		err := r.applier.RemoveNamed(ctx, m.UID, object.GroupVersionKind(), at.NamespacedName, leftFor(m))
		if err == nil || apierrors.IsConflict(err) { // another object has the name
			delete(found, at)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, r.removeSharedGrant(ctx, m, found, in))...)
}

// leftFor recognizes what the original made for a registry and is still its own.
func leftFor(m *v1beta1.ModelRegistry) func(*metav1.PartialObjectMetadata) (bool, error) {
	return func(live *metav1.PartialObjectMetadata) (bool, error) {
		return live.Labels[resources.LabelCreatedBy] == resources.CreatedBy && leftBy(live, m), nil
	}
}

// leftBy says whether the original made an object for this very registry. It made the registry control whatever a registry can
// own, but for the Secret with the key of cookies. Another owner, or the labels of another component, say whose it is: names of
// registries and of the catalog can be the same.
func leftBy(object *metav1.PartialObjectMetadata, m *v1beta1.ModelRegistry) bool {
	if namespace, known := object.Labels[resources.LabelNamespace]; known && namespace != m.Namespace || ofAnother(object) {
		return false
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID == m.UID
	}
	ownable := object.Namespace != "" && object.Kind != capability.HTTPRoute.Kind
	return !ownable || object.Name == resources.CookieSecretName(m)
}

// ofAnother says whether its labels name another component as the one that an object was made for.
func ofAnother(object client.Object) bool {
	former, said := object.GetLabels()[resources.LabelComponent]
	return apply.OfAnother(object, ComponentName) || said && former != resources.PartOf && former != resources.DatabaseComponent
}

// olderPlaces are the names under which releases of the original left objects that a registry may not want.
func olderPlaces(m *v1beta1.ModelRegistry, routeNamespace string) []place {
	at := func(kind schema.GroupVersionKind, namespace, name string) place {
		return place{kind.GroupKind(), types.NamespacedName{Namespace: namespace, Name: name}}
	}
	return []place{
		at(capability.Route, m.Namespace, resources.PlainRouteName(m)),
		at(capability.Route, m.Namespace, resources.SecureRouteName(m)),
		at(capability.Route, m.Namespace, m.Name+"-catalog-https"),
		at(policyKind, m.Namespace, resources.RoutePolicyName(m)),
		at(policyKind, m.Namespace, m.Name+"-catalog-https-route"),
		at(configMapKind, m.Namespace, resources.ProxyConfigName(m)),
		at(deploymentKind, m.Namespace, m.Name+"-catalog"),
		at(serviceKind, m.Namespace, m.Name+"-catalog"),
		at(secretKind, m.Namespace, resources.CookieSecretName(m)),
		at(clusterBindingKind, "", resources.DelegatorName(m)),
		at(capability.HTTPRoute, routeNamespace, resources.HTTPRouteName(m)),
	}
}

// lookBack lists what the original made in a namespace, and of the kinds without one.
func (r *registries) lookBack(ctx context.Context, namespace string, in resources.Inputs) (map[place]*metav1.PartialObjectMetadata, error) {
	kinds := map[schema.GroupVersionKind]string{
		deploymentKind: namespace, serviceKind: namespace, policyKind: namespace, configMapKind: namespace, secretKind: namespace,
		clusterBindingKind: "",
	}
	if in.OpenShift {
		kinds[capability.Route] = namespace
	}
	if in.HTTPRoutes {
		kinds[capability.HTTPRoute] = in.Gateway.RouteNamespace
	}
	if in.ReferenceGrants {
		kinds[capability.ReferenceGrant] = namespace
	}
	found := map[place]*metav1.PartialObjectMetadata{}
	for kind, where := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.live.List(ctx, list, client.InNamespace(where), client.MatchingLabels{resources.LabelCreatedBy: resources.CreatedBy})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s objects: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if object.Labels[names.OperatorLabel] == names.OperatorName {
				continue // the cache knows it
			}
			object.SetGroupVersionKind(kind)
			found[place{kind.GroupKind(), client.ObjectKeyFromObject(object)}] = object
		}
	}
	return found, nil
}

// The catalog shared the grant of the original with registries. These are the names of its own objects.
const (
	catalogComponent = "modelcatalog"
	catalogGrantName = "allow-gateway-model-catalog"
	catalogRouteName = "model-catalog"
)

// removeSharedGrant removes the ReferenceGrant by which the original let HTTPRoutes lead to every Service of a namespace,
// databases too, when nothing in the namespace lives by it any more. Only while it is there does that cost a request.
func (r *registries) removeSharedGrant(ctx context.Context, m *v1beta1.ModelRegistry, found map[place]*metav1.PartialObjectMetadata, in resources.Inputs) error {
	at := place{capability.ReferenceGrant.GroupKind(), types.NamespacedName{Namespace: m.Namespace, Name: resources.SharedGrantName}}
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
func (r *registries) registriesNeedSharedGrant(ctx context.Context, namespace string, in resources.Inputs) (bool, error) {
	list := &v1beta1.ModelRegistryList{}
	if err := r.cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing model registries: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		paused, _ := names.Paused(m.Annotations)
		if m.DeletionTimestamp != nil || !in.GatewayMode() && !paused {
			continue
		}
		own, err := r.cachedGrant(ctx, namespace, resources.GrantName(m))
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
func (r *registries) catalogNeedsSharedGrant(ctx context.Context, namespace string, in resources.Inputs) (bool, error) {
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
	typed, err := common.Decode[gatewayv1.HTTPRoute](route)
	if err != nil {
		return false, err
	}
	return leadsTo(typed, namespace), nil
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
func leadsTo(route *gatewayv1.HTTPRoute, namespace string) bool {
	return slices.ContainsFunc(route.Spec.Rules, func(rule gatewayv1.HTTPRouteRule) bool {
		return slices.ContainsFunc(rule.BackendRefs, func(backend gatewayv1.HTTPBackendRef) bool {
			return backend.Namespace != nil && string(*backend.Namespace) == namespace
		})
	})
}

// besideCatalog leads objects of the catalog to the registries in its namespace, which may wait for it to have its own grant.
func (r *registries) besideCatalog() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		if !apply.IsOurs(o, catalogComponent) {
			return nil
		}
		namespace := o.GetLabels()[resources.LabelNamespace]
		if namespace == "" {
			namespace = o.GetNamespace()
		}
		return r.matching(ctx, namespace, func(*v1beta1.ModelRegistry) bool { return true })
	})
}

const sweepRetry = time.Minute

// sweeper removes, once, the ClusterRoleBindings of registries that the original let go without them: a ServiceAccount of the
// same name would inherit their rights. It runs on the leader only.
type sweeper struct {
	live    client.Reader
	applier *apply.Applier
	clock   clock.Clock
	log     logr.Logger
}

// Start implements manager.Runnable. It never fails: what cannot be done now is tried again.
func (s *sweeper) Start(ctx context.Context) error {
	for {
		err := s.sweep(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		s.log.Error(err, "Removing ClusterRoleBindings of registries that are gone; trying again", "after", sweepRetry)
		select {
		case <-ctx.Done():
			return nil
		case <-s.clock.After(sweepRetry):
		}
	}
}

func (s *sweeper) sweep(ctx context.Context) error {
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := s.live.List(ctx, bindings, client.MatchingLabels{resources.LabelCreatedBy: resources.CreatedBy, resources.LabelComponent: resources.PartOf}); err != nil {
		return fmt.Errorf("listing ClusterRoleBindings: %w", err)
	}
	var errs []error
	for i := range bindings.Items {
		binding := &bindings.Items[i]
		of, ok := delegate(binding)
		if !ok {
			continue
		}
		// A registry exists before its binding does, so one that is not there now was not there when the binding was listed.
		err := s.live.Get(ctx, of, &v1beta1.ModelRegistry{})
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("reading ModelRegistry %s: %w", of, err))
			continue
		}
		s.log.Info("Removing the ClusterRoleBinding of a registry that is gone", "clusterRoleBinding", binding.Name, "registry", of.String())
		errs = append(errs, s.applier.Remove(ctx, "", binding))
	}
	return errors.Join(errs...)
}

// delegate returns the registry that a binding was made for, if it is one of those that registries get.
func delegate(binding *rbacv1.ClusterRoleBinding) (client.ObjectKey, bool) {
	of := client.ObjectKey{Namespace: binding.Labels[resources.LabelNamespace], Name: binding.Labels[resources.LabelApp]}
	m := &v1beta1.ModelRegistry{}
	m.Name, m.Namespace = of.Name, of.Namespace
	return of, of.Name != "" && of.Namespace != "" && binding.Name == resources.DelegatorName(m) && binding.RoleRef.Name == rbacproxy.DelegatorRole
}
