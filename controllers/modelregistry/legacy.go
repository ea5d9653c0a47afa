package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// This file deletes objects of the legacy operator. It may be removed in release 1.0: migration from the legacy operator then needs an
// earlier release first.

// legacyConditions are condition types of earlier releases.
var legacyConditions = []string{"OAuthProxyAvailable", "IstioAvailable", "GatewayAvailable"}

func removeLegacyConditions(_ context.Context, m *v1beta1.ModelRegistry) error {
	for _, conditionType := range legacyConditions {
		conditions.Remove(&m.Status.Conditions, conditionType)
	}
	if m.Spec.KubeRBACProxy == nil {
		conditions.Remove(&m.Status.Conditions, ConditionProxy)
	}
	return nil
}

// legacyCache holds the objects of the legacy operator that were not adopted, by namespace. They are listed once, because no new ones are
// created. They are read again before deletion, because their labels and owner may have changed in the meantime.
type legacyCache struct {
	mu         sync.Mutex
	namespaces map[string]map[apply.Key]*metav1.PartialObjectMetadata
}

// deleteLegacyObjects deletes objects of the legacy operator under known names that are not desired.
func (r *registryReconciler) deleteLegacyObjects(ctx context.Context, m *v1beta1.ModelRegistry, desired map[apply.Key]bool, in resources.Inputs) error {
	cache := &r.legacy
	cache.mu.Lock()
	defer cache.mu.Unlock()
	objects, ok := cache.namespaces[m.Namespace]
	if !ok {
		var err error
		if objects, err = r.findLegacyObjects(ctx, m.Namespace, in); err != nil {
			return err
		}
		if cache.namespaces == nil {
			cache.namespaces = map[string]map[apply.Key]*metav1.PartialObjectMetadata{}
		}
		cache.namespaces[m.Namespace] = objects
	}
	var errs []error
	for _, key := range legacyKeys(m, in.Gateway.RouteNamespace) {
		object := objects[key]
		if object == nil || desired[key] || !isLegacyObject(object, m) {
			continue
		}
		err := r.Applier.DeleteIf(ctx, m.UID, key.GroupVersionKind, key.NamespacedName, legacyPredicate(m))
		if err == nil || apierrors.IsConflict(err) { // an object with another UID has the name
			delete(objects, key)
			continue
		}
		errs = append(errs, err)
	}
	sharedGrant := apply.NewKey(capability.ReferenceGrant, m.Namespace, servers.SharedGrantName)
	if objects[sharedGrant] != nil {
		removed, err := servers.DeleteSharedGrant(ctx, r.APIReader, r.Applier, m.UID, m.Namespace)
		if errs = append(errs, err); removed {
			delete(objects, sharedGrant)
		}
	}
	return errors.Join(errs...)
}

// legacyPredicate matches objects of a registry with the created-by label of the legacy operator.
func legacyPredicate(m *v1beta1.ModelRegistry) func(*metav1.PartialObjectMetadata) (bool, error) {
	return func(live *metav1.PartialObjectMetadata) (bool, error) {
		return live.Labels[resources.LabelCreatedBy] == resources.CreatedBy && isLegacyObject(live, m), nil
	}
}

// isLegacyObject reports whether an object of the legacy operator belongs to this registry. Such objects are controlled by the registry,
// except cluster-scoped ones, HTTPRoutes and the Secret with the cookie key. The controller reference and component labels are checked
// because a registry and the catalog can use the same names.
func isLegacyObject(object *metav1.PartialObjectMetadata, m *v1beta1.ModelRegistry) bool {
	if namespace, found := object.Labels[resources.LabelNamespace]; found && namespace != m.Namespace || isOfOtherComponent(object) {
		return false
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID == m.UID
	}
	canHaveOwner := object.Namespace != "" && object.Kind != capability.HTTPRoute.Kind
	return !canHaveOwner || object.Name == resources.CookieSecretName(m)
}

// legacyKeys returns the keys that releases of the legacy operator used for objects of a registry.
func legacyKeys(m *v1beta1.ModelRegistry, routeNamespace string) []apply.Key {
	key := func(kind schema.GroupVersionKind, name string) apply.Key {
		return apply.NewKey(kind, m.Namespace, name)
	}
	return []apply.Key{
		key(capability.Route, resources.PlainRouteName(m)),
		key(capability.Route, resources.SecureRouteName(m)),
		key(capability.Route, m.Name+"-catalog-https"),
		key(servers.NetworkPolicy, m.Name+"-https-route"),
		key(servers.NetworkPolicy, m.Name+"-catalog-https-route"),
		key(servers.ConfigMap, resources.ProxyConfigName(m)),
		key(servers.Deployment, m.Name+"-catalog"),
		key(servers.Service, m.Name+"-catalog"),
		key(servers.Secret, resources.CookieSecretName(m)),
		apply.NewKey(servers.ClusterRoleBinding, "", resources.DelegatorName(m)),
		apply.NewKey(capability.HTTPRoute, routeNamespace, resources.HTTPRouteName(m)),
	}
}

// findLegacyObjects lists the objects of the legacy operator in a namespace, its ClusterRoleBindings and its HTTPRoutes.
func (r *registryReconciler) findLegacyObjects(ctx context.Context, namespace string, in resources.Inputs) (map[apply.Key]*metav1.PartialObjectMetadata, error) {
	kinds := map[schema.GroupVersionKind]string{
		servers.Deployment: namespace, servers.Service: namespace, servers.NetworkPolicy: namespace, servers.ConfigMap: namespace,
		servers.Secret: namespace, servers.ClusterRoleBinding: "",
	}
	for _, kind := range in.Served.Filter(capability.Route, capability.HTTPRoute, capability.ReferenceGrant) {
		kinds[kind] = namespace
	}
	if in.Served.Has(capability.HTTPRoute) {
		kinds[capability.HTTPRoute] = in.Gateway.RouteNamespace
	}
	found := map[apply.Key]*metav1.PartialObjectMetadata{}
	for kind, ns := range kinds {
		list := objectmeta.NewList(kind)
		err := r.APIReader.List(ctx, list, client.InNamespace(ns), client.MatchingLabels{resources.LabelCreatedBy: resources.CreatedBy})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s objects: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if object.Labels[names.OperatorLabel] == names.OperatorName {
				continue // already adopted
			}
			object.SetGroupVersionKind(kind)
			found[apply.NewKey(kind, object.Namespace, object.Name)] = object
		}
	}
	return found, nil
}

const legacyCleanerRetryInterval = time.Minute

// legacyCleaner runs once, on the leader. It deletes the ClusterRoleBindings, HTTPRoutes and Groups of registries that were deleted without
// the finalizer: a new ServiceAccount or Service of the same name would get their permissions.
type legacyCleaner struct {
	apiReader client.Reader
	applier   *apply.Applier
	clock     clock.Clock
	log       logr.Logger
}

// Start implements manager.Runnable. It retries failures and always returns nil.
func (c *legacyCleaner) Start(ctx context.Context) error {
	servers.Retry(ctx, c.clock, legacyCleanerRetryInterval, legacyCleanerRetryInterval, c.clean, func(err error, after time.Duration) {
		c.log.Error(err, "Removing objects of deleted registries failed; retrying", "after", after)
	})
	return nil
}

func (c *legacyCleaner) clean(ctx context.Context) error {
	legacyLabels := client.MatchingLabels{resources.LabelCreatedBy: resources.CreatedBy, resources.LabelComponent: resources.PartOf}
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := c.apiReader.List(ctx, bindings, legacyLabels); err != nil {
		return fmt.Errorf("listing ClusterRoleBindings: %w", err)
	}
	var errs []error
	for i := range bindings.Items {
		if b := &bindings.Items[i]; b.RoleRef.Name == rbacproxy.DelegatorRole {
			errs = append(errs, c.deleteOrphan(ctx, b, "ClusterRoleBinding", resources.DelegatorName))
		}
	}
	for kind, nameOf := range map[schema.GroupVersionKind]func(*v1beta1.ModelRegistry) string{
		capability.HTTPRoute: resources.HTTPRouteName, capability.UserGroup: resources.UsersName,
	} {
		list := objectmeta.NewList(kind)
		err := c.apiReader.List(ctx, list, legacyLabels)
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("listing %s: %w", kind.Kind, err))
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
			errs = append(errs, c.deleteOrphan(ctx, &list.Items[i], kind.Kind, nameOf))
		}
	}
	return errors.Join(errs...)
}

// deleteOrphan deletes an object if the registry in its labels does not exist. nameOf returns the name of such objects.
func (c *legacyCleaner) deleteOrphan(ctx context.Context, o client.Object, kind string, nameOf func(*v1beta1.ModelRegistry) string) error {
	m := &v1beta1.ModelRegistry{}
	m.Namespace, m.Name = o.GetLabels()[resources.LabelNamespace], o.GetLabels()[resources.LabelApp]
	key := client.ObjectKeyFromObject(m)
	if key.Name == "" || key.Namespace == "" || o.GetName() != nameOf(m) {
		return nil
	}
	// The objects were listed first. A registry is created before its objects, so a registry that is missing now has been deleted.
	if err := c.apiReader.Get(ctx, key, m); err == nil {
		return nil
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading ModelRegistry %s: %w", key, err)
	}
	c.log.Info("Removing an object of a deleted registry", "kind", kind, "object", o.GetName(), "registry", key.String())
	return c.applier.DeleteOwned(ctx, "", o)
}
