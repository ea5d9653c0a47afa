package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// prune deletes objects that are no longer desired: owned ones, those with the labels of the registry, and those of the legacy operator. It
// sends no request if nothing has changed.
func (r *registryReconciler) prune(ctx context.Context, m *v1beta1.ModelRegistry, desired apply.Desired, in resources.Inputs) error {
	desiredKeys := map[servers.Key]bool{}
	for _, o := range desired {
		kind, name, err := o.Key()
		if err != nil {
			return err
		}
		desiredKeys[servers.NewKey(kind, name.Namespace, name.Name)] = true
	}
	err := r.Applier.Prune(ctx, m, slices.Concat(desired, retainedDatabase(m)), in.Prunable(servers.CronJob), nil)
	for _, kind := range unownedKinds(in) {
		err = errors.Join(err, r.deleteUnowned(ctx, m, kind, desiredKeys))
	}
	if err != nil {
		return fmt.Errorf("deleting objects that are no longer desired: %w", err)
	}
	if err := r.deleteLegacyObjects(ctx, m, desiredKeys, in); err != nil {
		return fmt.Errorf("removing objects of the legacy operator: %w", err)
	}
	return nil
}

// retainedDatabase returns the objects of a generated database, which are kept when the spec names another one so that users can migrate
// the data. Backups are kept only while they are enabled.
func retainedDatabase(m *v1beta1.ModelRegistry) apply.Desired {
	var retained apply.Desired
	retained.Add(appsv1ac.Deployment(resources.DatabaseName(m), m.Namespace), corev1ac.Service(resources.DatabaseName(m), m.Namespace),
		networkingv1ac.NetworkPolicy(resources.DatabaseName(m), m.Namespace), networkingv1ac.NetworkPolicy(resources.DatabaseEgressName(m), m.Namespace))
	if hasBackups(m) {
		retained.Add(batchv1ac.CronJob(resources.BackupName(m), m.Namespace), networkingv1ac.NetworkPolicy(resources.BackupName(m), m.Namespace))
	}
	return retained
}

// unownedKinds returns the served kinds whose objects cannot have an owner reference to a registry.
func unownedKinds(in resources.Inputs) []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{servers.ClusterRoleBinding}
	if in.HTTPRoutes {
		kinds = append(kinds, capability.HTTPRoute)
	}
	if in.HasUserAPI {
		kinds = append(kinds, capability.UserGroup)
	}
	return kinds
}

// deleteUnowned deletes objects of a kind that have the labels of the registry and are not desired. It searches all namespaces, because the
// namespace of HTTPRoutes is a setting.
func (r *registryReconciler) deleteUnowned(ctx context.Context, m *v1beta1.ModelRegistry, kind schema.GroupVersionKind, desired map[servers.Key]bool) error {
	selector := map[string]string{resources.LabelApp: resources.LabelValue(m.Name), resources.LabelNamespace: m.Namespace}
	return r.Applier.DeleteByLabels(ctx, m.UID, kind, selector, func(o client.Object) bool {
		return desired[servers.NewKey(kind, o.GetNamespace(), o.GetName())]
	})
}

// finalize deletes the objects that garbage collection cannot delete. Before, it orphans retained data.
func (r *registryReconciler) finalize(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if err := r.waitForPlatform(ctx, m); err != nil {
		return err
	}
	waitForStatus := &reconciler.Wait{For: "the status to be written", Retry: time.Millisecond}
	if meta.FindStatusCondition(m.Status.Conditions, ConditionDegraded) == nil {
		setCondition(m, ConditionDegraded, metav1.ConditionUnknown, ReasonFinalizing, "Performing finalizer operations for the custom resource: "+m.Name)
		return waitForStatus
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
		r.eventf(m, corev1.EventTypeNormal, "DataRetained", "Claim %s and Secret %s of the database stay; a new registry of the same name uses them",
			resources.ClaimName(m), resources.CredentialsName(m))
	}
	setCondition(m, ConditionDegraded, metav1.ConditionTrue, ReasonFinalizing, "Finalizer operations for custom resource "+m.Name+" were successfully accomplished")
	return waitForStatus
}

// deleteAllUnowned deletes Group, ClusterRoleBinding and HTTPRoute of a registry, including legacy ones. An API that is not served is no
// error.
func (r *registryReconciler) deleteAllUnowned(ctx context.Context, m *v1beta1.ModelRegistry) error {
	in := buildInputs(m, &r.stateOf(m).platform)
	legacyNames := map[schema.GroupVersionKind]types.NamespacedName{
		servers.ClusterRoleBinding: {Name: resources.DelegatorName(m)},
		capability.HTTPRoute:       {Namespace: in.Gateway.RouteNamespace, Name: resources.HTTPRouteName(m)},
		capability.UserGroup:       {Name: resources.UsersName(m)},
	}
	var errs []error
	for _, kind := range unownedKinds(in) {
		errs = append(errs, r.deleteUnowned(ctx, m, kind, nil), r.Applier.DeleteIf(ctx, m.UID, kind, legacyNames[kind], legacyPredicate(m)))
	}
	return errors.Join(errs...)
}
