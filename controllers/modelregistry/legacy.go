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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// This file removes what the original operator left behind, and may go with release 1.0: who comes from the original has to run an
// earlier release first.

// olderConditions are those of releases before this one, which are not set any more.
var legacyConditions = []string{"OAuthProxyAvailable", "IstioAvailable", "GatewayAvailable"}

func removeLegacyConditions(_ context.Context, m *v1beta1.ModelRegistry) error {
	for _, kind := range legacyConditions {
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
type legacyCache struct {
	mu         sync.Mutex
	namespaces map[string]map[objectKey]*metav1.PartialObjectMetadata
}

// removeLeftovers removes what the original made under names that its releases used and that are not wanted.
func (r *registryReconciler) deleteLegacyObjects(ctx context.Context, m *v1beta1.ModelRegistry, wanted map[objectKey]bool, in resources.Inputs) error {
	l := &r.legacy
	l.mu.Lock()
	defer l.mu.Unlock()
	found, ok := l.namespaces[m.Namespace]
	if !ok {
		var err error
		if found, err = r.findLegacyObjects(ctx, m.Namespace, in); err != nil {
			return err
		}
		if l.namespaces == nil {
			l.namespaces = map[string]map[objectKey]*metav1.PartialObjectMetadata{}
		}
		l.namespaces[m.Namespace] = found
	}
	var errs []error
	for _, at := range legacyKeys(m, in.Gateway.RouteNamespace) {
		object := found[at]
		if object == nil || wanted[at] || !isLegacyObject(object, m) {
			continue
		}
		err := r.applier.DeleteIf(ctx, m.UID, at.GroupVersionKind, at.NamespacedName, legacyPredicate(m))
		if err == nil || apierrors.IsConflict(err) { // another object has the name
			delete(found, at)
			continue
		}
		errs = append(errs, err)
	}
	shared := objectKey{capability.ReferenceGrant, types.NamespacedName{Namespace: m.Namespace, Name: registry.SharedGrantName}}
	if found[shared] != nil {
		settled, err := registry.RemoveSharedGrant(ctx, r.apiReader, r.applier, m.UID, m.Namespace)
		if errs = append(errs, err); settled {
			delete(found, shared)
		}
	}
	return errors.Join(errs...)
}

// leftFor recognizes what the original made for a registry and is still its own.
func legacyPredicate(m *v1beta1.ModelRegistry) func(*metav1.PartialObjectMetadata) (bool, error) {
	return func(live *metav1.PartialObjectMetadata) (bool, error) {
		return live.Labels[resources.LabelCreatedBy] == resources.CreatedBy && isLegacyObject(live, m), nil
	}
}

// leftBy says whether the original made an object for this very registry. It made the registry control whatever a registry can
// own, but for the Secret with the key of cookies. Another owner, or the labels of another component, say whose it is: names of
// registries and of the catalog can be the same.
func isLegacyObject(object *metav1.PartialObjectMetadata, m *v1beta1.ModelRegistry) bool {
	if namespace, known := object.Labels[resources.LabelNamespace]; known && namespace != m.Namespace || isOfOtherComponent(object) {
		return false
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID == m.UID
	}
	ownable := object.Namespace != "" && object.Kind != capability.HTTPRoute.Kind
	return !ownable || object.Name == resources.CookieSecretName(m)
}

// olderPlaces are the names under which releases of the original left objects that a registry may not want.
func legacyKeys(m *v1beta1.ModelRegistry, routeNamespace string) []objectKey {
	here := func(kind schema.GroupVersionKind, name string) objectKey {
		return objectKey{kind, types.NamespacedName{Namespace: m.Namespace, Name: name}}
	}
	return []objectKey{
		here(capability.Route, resources.PlainRouteName(m)),
		here(capability.Route, resources.SecureRouteName(m)),
		here(capability.Route, m.Name+"-catalog-https"),
		here(registry.NetworkPolicy, resources.RoutePolicyName(m)),
		here(registry.NetworkPolicy, m.Name+"-catalog-https-route"),
		here(registry.ConfigMap, resources.ProxyConfigName(m)),
		here(registry.Deployment, m.Name+"-catalog"),
		here(registry.Service, m.Name+"-catalog"),
		here(registry.Secret, resources.CookieSecretName(m)),
		{registry.ClusterBinding, types.NamespacedName{Name: resources.DelegatorName(m)}},
		{capability.HTTPRoute, types.NamespacedName{Namespace: routeNamespace, Name: resources.HTTPRouteName(m)}},
	}
}

// lookBack lists what the original made in a namespace, and of the kinds without one.
func (r *registryReconciler) findLegacyObjects(ctx context.Context, namespace string, in resources.Inputs) (map[objectKey]*metav1.PartialObjectMetadata, error) {
	kinds := map[schema.GroupVersionKind]string{
		registry.Deployment: namespace, registry.Service: namespace, registry.NetworkPolicy: namespace, registry.ConfigMap: namespace,
		registry.Secret: namespace, registry.ClusterBinding: "",
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
	found := map[objectKey]*metav1.PartialObjectMetadata{}
	for kind, where := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.apiReader.List(ctx, list, client.InNamespace(where), client.MatchingLabels{resources.LabelCreatedBy: resources.CreatedBy})
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
			found[objectKey{kind, client.ObjectKeyFromObject(object)}] = object
		}
	}
	return found, nil
}

const legacyCleanerRetryInterval = time.Minute

// sweeper removes, once, the ClusterRoleBindings, HTTPRoutes and Groups of registries that the original let go without them, or that lost
// their finalizer by force: a ServiceAccount or Service of the same name would inherit them. It runs on the leader only.
type legacyCleaner struct {
	apiReader client.Reader
	applier   *apply.Applier
	clock     clock.Clock
	log       logr.Logger
}

// Start implements manager.Runnable. It never fails: what cannot be done now is tried again.
func (s *legacyCleaner) Start(ctx context.Context) error {
	registry.Retry(ctx, s.clock, legacyCleanerRetryInterval, legacyCleanerRetryInterval, s.clean, func(err error, after time.Duration) {
		s.log.Error(err, "Removing what is left of registries that are gone; trying again", "after", after)
	})
	return nil
}

func (s *legacyCleaner) clean(ctx context.Context) error {
	labelled := client.MatchingLabels{resources.LabelCreatedBy: resources.CreatedBy, resources.LabelComponent: resources.PartOf}
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := s.apiReader.List(ctx, bindings, labelled); err != nil {
		return fmt.Errorf("listing ClusterRoleBindings: %w", err)
	}
	var errs []error
	for i := range bindings.Items {
		if b := &bindings.Items[i]; b.RoleRef.Name == rbacproxy.DelegatorRole {
			errs = append(errs, s.deleteOrphan(ctx, b, "ClusterRoleBinding", resources.DelegatorName))
		}
	}
	for kind, nameOf := range map[schema.GroupVersionKind]func(*v1beta1.ModelRegistry) string{
		capability.HTTPRoute: resources.HTTPRouteName, capability.UserGroup: resources.UsersName,
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := s.apiReader.List(ctx, list, labelled)
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("listing %s: %w", kind.Kind, err))
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
			errs = append(errs, s.deleteOrphan(ctx, &list.Items[i], kind.Kind, nameOf))
		}
	}
	return errors.Join(errs...)
}

// removeLeft removes an object that has the name of those that registries get, if its registry is gone.
func (s *legacyCleaner) deleteOrphan(ctx context.Context, o client.Object, kind string, nameOf func(*v1beta1.ModelRegistry) string) error {
	m := &v1beta1.ModelRegistry{}
	m.Namespace, m.Name = o.GetLabels()[resources.LabelNamespace], o.GetLabels()[resources.LabelApp]
	of := client.ObjectKeyFromObject(m)
	if of.Name == "" || of.Namespace == "" || o.GetName() != nameOf(m) {
		return nil
	}
	// A registry exists before its objects do, so one that is not there now was not there when they were listed.
	if err := s.apiReader.Get(ctx, of, m); err == nil {
		return nil
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading ModelRegistry %s: %w", of, err)
	}
	s.log.Info("Removing what is left of a registry that is gone", "kind", kind, "object", o.GetName(), "registry", of.String())
	return s.applier.DeleteOwned(ctx, "", o)
}
