package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	userv1 "github.com/openshift/api/user/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/database"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// Label values of the objects of a catalog. The objects of a registry can have the same kinds and names.
const (
	catalogComponent = "modelcatalog"
	catalogName      = "model-catalog"
)

// splitByOwnership separates objects with an owner reference to the registry from cluster-scoped ones and those in other namespaces.
func splitByOwnership(desired apply.Desired) (owned, unowned apply.Desired) {
	isUnowned := func(o apply.Object) bool { return o.Ownership == apply.Unowned }
	isOwned := func(o apply.Object) bool { return !isUnowned(o) }
	return slices.DeleteFunc(slices.Clone(desired), isUnowned), slices.DeleteFunc(slices.Clone(desired), isOwned)
}

// recreateOnSelectorChange deletes a Deployment in the foreground if its selector, which is immutable, differs. No other rejected update
// deletes a running server.
func (r *registryReconciler) recreateOnSelectorChange(ctx context.Context, m *v1beta1.ModelRegistry, live *appsv1.Deployment, selector map[string]string) error {
	current := live.Spec.Selector
	if current == nil || !metav1.IsControlledBy(live, m) || len(current.MatchExpressions) == 0 && maps.Equal(current.MatchLabels, selector) {
		return nil
	}
	if live.DeletionTimestamp == nil {
		r.eventf(m, corev1.EventTypeWarning, "RecreatingDeployment", "Deployment %s is recreated, because its selector differs and is immutable", live.Name)
		if err := r.Applier.DeleteOwned(ctx, m.UID, live, apply.Foreground); err != nil {
			return err
		}
	}
	return &reconciler.Wait{For: "a Deployment to be recreated", Retry: reconciler.RequeueSoon, Unready: true}
}

// proxyTransition is the state of a registry whose proxy is being added or removed. The exposure must match the pods that serve, not the
// new pod template.
type proxyTransition struct {
	// inProgress is true while pods are ready and none of them is from after the transition.
	inProgress bool
	// toProxy is true if the spec has a proxy.
	toProxy bool
	// certificateMissing is true if the certificate of the proxy is missing. Pods with a proxy would not start.
	certificateMissing bool
}

func (r *registryReconciler) detectProxyTransition(ctx context.Context, m, effective *v1beta1.ModelRegistry) (proxyTransition, error) {
	t := proxyTransition{toProxy: effective.Spec.KubeRBACProxy != nil}
	pods, err := r.podsOf(ctx, m, resources.ServerSelector(m))
	if err != nil {
		return t, err
	}
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() || !isReady(&pods[i]) {
			continue
		}
		if hasProxy(&pods[i]) == t.toProxy {
			return proxyTransition{toProxy: t.toProxy}, nil
		}
		t.inProgress = true
	}
	certificate := certificateReferences(effective)
	t.certificateMissing = slices.ContainsFunc(r.stateOf(m).missingReferences, func(missing reference.Missing) bool {
		return slices.ContainsFunc(certificate, func(ref reference.Reference) bool { return ref.ID() == missing.ID() })
	})
	return t, nil
}

// withoutDeferred returns the desired objects without those to be applied after the transition. The Service of a new proxy is applied with
// the port of the serving pods, because its annotation requests the certificate.
func (t proxyTransition) withoutDeferred(desired apply.Desired) apply.Desired {
	if !t.inProgress {
		return desired
	}
	return slices.DeleteFunc(slices.Clone(desired), func(o apply.Object) bool {
		switch o.Key().GroupVersionKind {
		case capability.Route, capability.HTTPRoute, servers.Ingress:
			return true
		case servers.Service:
			return !t.toProxy
		case servers.Deployment:
			return t.certificateMissing
		}
		return false
	})
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func hasProxy(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == rbacproxy.ContainerName })
}

// applyUnowned applies objects outside of the namespace of the registry. It returns an error for objects of another registry or component,
// and does not change them.
func (r *registryReconciler) applyUnowned(ctx context.Context, m *v1beta1.ModelRegistry, unowned apply.Desired) error {
	r.unownedMu.Lock()
	defer r.unownedMu.Unlock()
	var errs []error
	toApply := make(apply.Desired, 0, len(unowned))
	for _, o := range unowned {
		key := o.Key()
		live, err := r.getUnowned(ctx, m, key)
		switch {
		case err != nil:
			errs = append(errs, err)
		case key.GroupVersionKind == capability.UserGroup:
			errs = append(errs, r.ensureGroup(ctx, m, live))
		default:
			toApply = append(toApply, o)
		}
	}
	r.takeOver.Adopt(m, toApply)
	return errors.Join(append(errs, r.Applier.Apply(ctx, m, toApply))...)
}

// getUnowned returns the metadata of an object, or nil if it does not exist. It returns an error if the object belongs to another registry
// or component.
func (r *registryReconciler) getUnowned(ctx context.Context, m *v1beta1.ModelRegistry, key apply.Key) (*metav1.PartialObjectMetadata, error) {
	live := objectmeta.New(key.GroupVersionKind)
	found, err := r.Find(ctx, key.NamespacedName, live)
	if err == nil && found {
		err = r.checkNotForeign(ctx, m, live)
	}
	switch {
	case err != nil:
		return nil, &apply.Error{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Err: err}
	case !found:
		return nil, nil
	}
	return live, nil
}

// checkNotForeign returns an error if an object belongs to another component or to an existing registry of another namespace.
func (r *registryReconciler) checkNotForeign(ctx context.Context, m *v1beta1.ModelRegistry, live *metav1.PartialObjectMetadata) error {
	other := live.Labels[resources.LabelNamespace]
	foreign := newForeignError(live)
	switch {
	case resources.IsOfOtherComponent(live):
		foreign.Controller = strings.TrimSpace("component " + live.Labels[names.ComponentLabel])
		if live.Labels[names.ComponentLabel] == catalogComponent || live.Labels[resources.LabelComponent] == catalogName {
			foreign.Controller = fmt.Sprintf("%s %s/%s", aihubv1alpha1.Kind, other, aihubv1alpha1.CatalogName)
		}
	case other == "" || other == m.Namespace:
		return nil
	default:
		err := r.Cached.Get(ctx, client.ObjectKey{Namespace: other, Name: m.Name}, &v1beta1.ModelRegistry{})
		if err != nil {
			return client.IgnoreNotFound(err) // objects of a deleted registry may be adopted
		}
		foreign.Controller = fmt.Sprintf("%s %s/%s", v1beta1.Kind, other, m.Name)
	}
	return foreign
}

func newForeignError(live client.Object) *apply.ForeignError {
	return &apply.ForeignError{Kind: live.GetObjectKind().GroupVersionKind().Kind, Namespace: live.GetNamespace(), Name: live.GetName()}
}

// ensureGroup creates the Group or updates its labels. Administrators add the users. The API requires the list of users, so the Group
// is created with an empty list, and the list is never applied again, not even to release the field.
func (r *registryReconciler) ensureGroup(ctx context.Context, m *v1beta1.ModelRegistry, live *metav1.PartialObjectMetadata) error {
	if live == nil {
		return r.Applier.Create(ctx, m, apply.Object{Config: resources.Group(m, userv1.OptionalNames{}), Ownership: apply.Unowned})
	}
	applied := slices.ContainsFunc(live.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == FieldOwner })
	if !isManaged(live) && !applied { // its labels may have been removed
		return &apply.Error{Kind: live.Kind, Name: live.Name, Err: newForeignError(live)}
	}
	return r.Applier.PatchExisting(ctx, live, func() {
		updateLabels(live, labels.Merge(resources.ClusterLabels(m, live.Name), names.Labels(ComponentName)))
	})
}

// prune deletes objects that are no longer desired: objects that the registry owns, unowned objects with its labels, and legacy objects.
// It sends no request if nothing has changed.
func (r *registryReconciler) prune(ctx context.Context, m *v1beta1.ModelRegistry, desired apply.Desired, in resources.Inputs) error {
	err := r.Applier.Prune(ctx, m, slices.Concat(desired, r.retainedDatabase(m)), in.Prunable(servers.CronJob), nil)
	for _, kind := range unownedKinds(in) {
		err = errors.Join(err, r.deleteUnowned(ctx, m, kind, desired))
	}
	if err != nil {
		return fmt.Errorf("deleting objects that are no longer desired: %w", err)
	}
	return r.takeOver.Prune(ctx, m, desired)
}

// retainedDatabase returns the objects of a generated database, which prune keeps although desired never contains them. It keeps them even
// if the spec names another database, because users may still have to migrate the data. The objects of backups are kept only while
// backups are enabled and their claim is not foreign.
func (r *registryReconciler) retainedDatabase(m *v1beta1.ModelRegistry) apply.Desired {
	var retained apply.Desired
	retained.Add(appsv1ac.Deployment(resources.DatabaseName(m), m.Namespace), corev1ac.Service(resources.DatabaseName(m), m.Namespace),
		networkingv1ac.NetworkPolicy(resources.DatabaseName(m), m.Namespace), networkingv1ac.NetworkPolicy(resources.DatabaseEgressName(m), m.Namespace))
	if blocked := r.stateOf(m).backupBlocked; hasBackups(m) && (blocked == nil || blocked.Reason == database.ReasonRefused) {
		retained.Add(batchv1ac.CronJob(resources.BackupName(m), m.Namespace), networkingv1ac.NetworkPolicy(resources.BackupName(m), m.Namespace))
	}
	return retained
}

// unownedKinds returns the served kinds whose objects cannot have an owner reference to a registry.
func unownedKinds(in resources.Inputs) []schema.GroupVersionKind {
	return append(in.Served.Filter(capability.HTTPRoute, capability.UserGroup), servers.ClusterRoleBinding)
}

// deleteUnowned deletes objects of a kind that have the labels of the registry and are not desired. It searches all namespaces, because the
// namespace of HTTPRoutes is a setting.
func (r *registryReconciler) deleteUnowned(ctx context.Context, m *v1beta1.ModelRegistry, kind schema.GroupVersionKind, desired apply.Desired) error {
	selector := map[string]string{resources.LabelApp: resources.LabelValue(m.Name), resources.LabelNamespace: m.Namespace}
	return r.Applier.DeleteByLabels(ctx, m.UID, kind, selector, func(o client.Object) bool {
		key := apply.NewKey(kind, o.GetNamespace(), o.GetName())
		return slices.ContainsFunc(desired, func(d apply.Object) bool { return d.Key() == key })
	})
}

// finalize orphans retained data, and then deletes the objects that garbage collection cannot delete.
func (r *registryReconciler) finalize(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if err := r.waitForPlatform(ctx, m); err != nil {
		return err
	}
	statusWait := &reconciler.Wait{For: "the status to be written", Retry: time.Millisecond}
	if meta.FindStatusCondition(m.Status.Conditions, ConditionDegraded) == nil {
		setCondition(m, ConditionDegraded, metav1.ConditionUnknown, ReasonFinalizing, "Performing finalizer operations for the custom resource: "+m.Name)
		return statusWait
	}
	retained, err := r.updateDataOwners(ctx, m)
	if err != nil {
		return err
	}
	if err := r.deleteAllUnowned(ctx, m); err != nil {
		setCondition(m, ConditionDegraded, metav1.ConditionUnknown, ReasonFinalizing, "Finalizer operations have not succeeded yet: "+err.Error())
		return err
	}
	if meta.IsStatusConditionTrue(m.Status.Conditions, ConditionDegraded) {
		return nil
	}
	r.eventf(m, corev1.EventTypeNormal, "Deleting", "Custom resource %s is being deleted from the namespace %s", m.Name, m.Namespace)
	if retained {
		r.eventf(m, corev1.EventTypeNormal, "DataRetained", "PersistentVolumeClaim %s and Secret %s of the database are kept; a new registry of the same name uses them",
			resources.ClaimName(m), resources.CredentialsName(m))
	}
	setCondition(m, ConditionDegraded, metav1.ConditionTrue, ReasonFinalizing, "Finalizer operations for custom resource "+m.Name+" were successfully accomplished")
	return statusWait
}

// deleteAllUnowned deletes Group, ClusterRoleBinding and HTTPRoute of a registry. It ignores APIs that are not served.
func (r *registryReconciler) deleteAllUnowned(ctx context.Context, m *v1beta1.ModelRegistry) error {
	var errs []error
	for _, kind := range unownedKinds(buildInputs(m, &r.stateOf(m).platform)) {
		errs = append(errs, r.deleteUnowned(ctx, m, kind, nil))
	}
	return errors.Join(append(errs, r.takeOver.Finalize(ctx, m))...)
}

const orphanRetryInterval = time.Minute

// orphanCleaner runs once, on the leader. It deletes the ClusterRoleBindings, HTTPRoutes and Groups of registries that were deleted without
// the finalizer, such as by force: a new ServiceAccount or Service of the same name would get their permissions or their requests.
type orphanCleaner struct {
	apiReader client.Reader
	applier   *apply.Applier
	clock     clock.Clock
	log       logr.Logger
}

// Start implements manager.Runnable. It retries failures and always returns nil.
func (c *orphanCleaner) Start(ctx context.Context) error {
	servers.Retry(ctx, c.clock, orphanRetryInterval, orphanRetryInterval, c.clean, func(err error, after time.Duration) {
		c.log.Error(err, "Removing objects of deleted registries failed; retrying", "after", after)
	})
	return nil
}

func (c *orphanCleaner) clean(ctx context.Context) error {
	registryLabels := client.MatchingLabels{resources.LabelCreatedBy: resources.CreatedBy, resources.LabelComponent: resources.PartOf}
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := c.apiReader.List(ctx, bindings, registryLabels); err != nil {
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
		err := c.apiReader.List(ctx, list, registryLabels)
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
func (c *orphanCleaner) deleteOrphan(ctx context.Context, o client.Object, kind string, nameOf func(*v1beta1.ModelRegistry) string) error {
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
