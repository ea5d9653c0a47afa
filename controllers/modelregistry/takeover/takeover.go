// Package takeover adopts or deletes objects of the legacy operator of registries. The controller works without this package: it can be
// deleted in version 1.0, unless that version supports direct upgrades from the legacy operator.
package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

// registries takes over the objects of registries.
type registries struct {
	apiReader client.Reader
	applier   *apply.Applier
	platform  func(*v1beta1.ModelRegistry) servers.Platform

	mu sync.Mutex
	// namespaces holds the legacy objects that were not adopted, by namespace of registries. They are listed once, because no new ones are
	// created. They are read again before deletion, because their labels and owner may have changed in the meantime.
	namespaces map[string]map[apply.Key]*metav1.PartialObjectMetadata
}

// New returns the take-over. platform returns the settings of the current reconcile of a registry.
func New(apiReader client.Reader, applier *apply.Applier, platform func(*v1beta1.ModelRegistry) servers.Platform) takeover.Interface[*v1beta1.ModelRegistry] {
	return &registries{apiReader: apiReader, applier: applier, platform: platform, namespaces: map[string]map[apply.Key]*metav1.PartialObjectMetadata{}}
}

// Adopt implements takeover.Interface. It also removes legacy conditions from the status.
func (r *registries) Adopt(m *v1beta1.ModelRegistry, desired apply.Desired) {
	for _, conditionType := range []string{"OAuthProxyAvailable", "IstioAvailable", "GatewayAvailable"} {
		conditions.Remove(&m.Status.Conditions, conditionType)
	}
	for i := range desired {
		desired[i].AdoptIf = adoptable(m)
	}
}

// adoptable returns a predicate for legacy objects of a registry. The legacy operator set the namespace label only on some kinds.
func adoptable(m *v1beta1.ModelRegistry) func(*unstructured.Unstructured) bool {
	return func(live *unstructured.Unstructured) bool {
		return live.GetLabels()[resources.LabelApp] == resources.LabelValue(m.Name) && hasLegacyLabels(live, m)
	}
}

// hasLegacyLabels reports whether an object has the created-by label of the legacy operator and no label of another namespace or component.
func hasLegacyLabels(object metav1.Object, m *v1beta1.ModelRegistry) bool {
	namespace, found := object.GetLabels()[resources.LabelNamespace]
	return object.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy && (!found || namespace == m.Namespace) && !resources.IsOfOtherComponent(object)
}

// isLegacyObject reports whether an object of the legacy operator belongs to a registry. Such objects are controlled by the registry,
// except cluster-scoped ones, HTTPRoutes and the Secret with the cookie key. The controller reference and component labels are checked
// because a registry and the catalog can use the same names.
func isLegacyObject(object *metav1.PartialObjectMetadata, m *v1beta1.ModelRegistry) bool {
	if !hasLegacyLabels(object, m) {
		return false
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID == m.UID
	}
	canHaveOwner := object.Namespace != "" && object.Kind != capability.HTTPRoute.Kind
	return !canHaveOwner || object.Name == cookieSecretName(m)
}

// cookieSecretName returns the name of the Secret that the legacy operator created for oauth-proxy.
func cookieSecretName(m *v1beta1.ModelRegistry) string { return m.Name + "-oauth-cookie-secret" }

// Prune implements takeover.Interface. It deletes legacy objects under known names.
func (r *registries) Prune(ctx context.Context, m *v1beta1.ModelRegistry, desired apply.Desired) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	platform := r.platform(m)
	found, err := r.find(ctx, m.Namespace, platform.Served)
	errs := []error{err}
	for _, key := range append(ownedKeys(m), unownedKeys(m, platform)...) {
		object, isKey := found[key], func(o apply.Object) bool { return o.Key() == key }
		if object == nil || slices.ContainsFunc(desired, isKey) || !isLegacyObject(object, m) {
			continue
		}
		if err := r.delete(ctx, m, key); err != nil && !apierrors.IsConflict(err) { // in a conflict, an object with another UID has the name
			errs = append(errs, err)
			continue
		}
		delete(found, key)
	}
	sharedGrant := apply.NewKey(capability.ReferenceGrant, m.Namespace, servers.SharedGrantName)
	if found[sharedGrant] != nil {
		removed, err := servers.DeleteSharedGrant(ctx, r.apiReader, r.applier, m.UID, m.Namespace)
		if errs = append(errs, err); removed {
			delete(found, sharedGrant)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing objects of the legacy operator: %w", err)
	}
	return nil
}

// Finalize implements takeover.Interface.
func (r *registries) Finalize(ctx context.Context, m *v1beta1.ModelRegistry) error {
	var errs []error
	for _, key := range unownedKeys(m, r.platform(m)) {
		errs = append(errs, r.delete(ctx, m, key))
	}
	return errors.Join(errs...)
}

// delete deletes an object if it is a legacy object of the registry.
func (r *registries) delete(ctx context.Context, m *v1beta1.ModelRegistry, key apply.Key) error {
	return r.applier.DeleteIf(ctx, m.UID, key.GroupVersionKind, key.NamespacedName, func(live *metav1.PartialObjectMetadata) (bool, error) {
		return isLegacyObject(live, m), nil
	})
}

// ownedKeys returns the keys of legacy objects in the namespace of a registry that the current spec may not need.
func ownedKeys(m *v1beta1.ModelRegistry) []apply.Key {
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
		key(servers.Secret, cookieSecretName(m)),
	}
}

// unownedKeys returns the keys of objects outside of the namespace of a registry, whose kinds are served.
func unownedKeys(m *v1beta1.ModelRegistry, platform servers.Platform) []apply.Key {
	keys := []apply.Key{
		apply.NewKey(servers.ClusterRoleBinding, "", resources.DelegatorName(m)),
		apply.NewKey(capability.HTTPRoute, platform.Gateway.RouteNamespace, resources.HTTPRouteName(m)),
		apply.NewKey(capability.UserGroup, "", resources.UsersName(m)),
	}
	return slices.DeleteFunc(keys, func(key apply.Key) bool {
		return key.GroupVersionKind != servers.ClusterRoleBinding && !platform.Served.Has(key.GroupVersionKind)
	})
}

// find returns the legacy objects in a namespace, and all legacy ClusterRoleBindings and HTTPRoutes. They are listed by the first call for
// the namespace.
func (r *registries) find(ctx context.Context, namespace string, served capability.Set) (map[apply.Key]*metav1.PartialObjectMetadata, error) {
	if found := r.namespaces[namespace]; found != nil {
		return found, nil
	}
	const selector = resources.LabelCreatedBy + "=" + resources.CreatedBy
	kinds := append(served.Filter(capability.Route, capability.ReferenceGrant), servers.Deployment, servers.Service, servers.NetworkPolicy, servers.ConfigMap, servers.Secret)
	owned, err := takeover.List(ctx, r.apiReader, kinds, selector, client.InNamespace(namespace))
	unowned, unownedErr := takeover.List(ctx, r.apiReader, append(served.Filter(capability.HTTPRoute), servers.ClusterRoleBinding), selector)
	if err := errors.Join(err, unownedErr); err != nil {
		return nil, err
	}
	found := map[apply.Key]*metav1.PartialObjectMetadata{}
	for _, object := range append(owned, unowned...) {
		found[apply.NewKey(object.GroupVersionKind(), object.Namespace, object.Name)] = &object
	}
	r.namespaces[namespace] = found
	return found, nil
}
