package appwrapper

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// deleteComponents deletes the components that this AppWrapper controls, and returns the number of remaining objects and pods. It does not
// wait. With force it sets a grace period of 0, and deletes the pods once every component is deleted or terminating.
func (w *workloadReconciler) deleteComponents(ctx context.Context, aw *awv1beta2.AppWrapper, force bool) *rules.Deletion {
	progress := &rules.Deletion{}
	notTerminating := 0   // number of objects without a deletionTimestamp, and of components with an error
	var unreachable []int // indexes of components of kinds that are no longer served
	var unreachableErr error
	for i := range aw.Status.ComponentStatus {
		remaining, err := w.deleteComponent(ctx, aw, i, force)
		if w.isUnreachable(ctx, aw, i, err, force) {
			unreachable, unreachableErr = append(unreachable, i), err
			continue
		}
		if err != nil {
			progress.Objects++
			notTerminating++
			progress.Err = errors.Join(progress.Err, err)
		}
		for _, observed := range remaining {
			progress.Objects++
			progress.Unwatched = progress.Unwatched || observed.unwatched
			if observed.object.GetDeletionTimestamp() == nil {
				notTerminating++
			}
		}
	}
	if progress.Objects > 0 && (!force || notTerminating > 0) {
		return progress
	}
	w.deleteRemaining(ctx, aw, force, unreachable, unreachableErr, progress)
	return progress
}

// isUnreachable reports whether a component cannot be read: its API was deleted, or is not served while deletion is forced. Unless
// deletion is forced, it stops the watch of a deleted API.
func (w *workloadReconciler) isUnreachable(ctx context.Context, aw *awv1beta2.AppWrapper, index int, err error, force bool) bool {
	return isUnserved(err) && (force || w.kinds.stopIfAPIDeleted(ctx, kindOf(&aw.Status.ComponentStatus[index])))
}

// deleteRemaining counts the pods. With force it deletes them, unless components are unreachable. Unreachable components count as deleted
// only when no pod remains: their objects may exist in another version and create new pods.
func (w *workloadReconciler) deleteRemaining(ctx context.Context, aw *awv1beta2.AppWrapper, force bool, unreachable []int, unreachableErr error, progress *rules.Deletion) {
	progress.Err = errors.Join(progress.Err, w.deletePods(ctx, aw, force && unreachableErr == nil, progress))
	if progress.Pods > 0 {
		progress.Err = errors.Join(progress.Err, unreachableErr)
	}
	if progress.Finished() {
		w.setDeleted(aw, unreachable...)
	}
}

// setDeleted sets the status of deleted components.
func (w *workloadReconciler) setDeleted(aw *awv1beta2.AppWrapper, indexes ...int) {
	for _, i := range indexes {
		setResourcesDeployed(&aw.Status.ComponentStatus[i], metav1.ConditionFalse, awv1beta2.ReasonComponentDeletedTypo, "", w.settings.Clock.Now())
	}
}

// deleteComponent deletes the object of a component, or several if its name is unknown, and returns the objects that it found.
func (w *workloadReconciler) deleteComponent(ctx context.Context, aw *awv1beta2.AppWrapper, index int, force bool) ([]observedObject, error) {
	status := &aw.Status.ComponentStatus[index]
	if stageOf(status) == rules.NotCreated || status.Kind == "" {
		return nil, nil
	}
	existing, err := w.existingObjects(ctx, aw, index)
	if err != nil {
		return nil, err
	}
	for _, observed := range existing {
		if err := w.deleteObject(ctx, kindOf(status), observed.object, force); err != nil {
			return nil, err
		}
	}
	if len(existing) == 0 {
		w.setDeleted(aw, index)
	}
	return existing, nil
}

// existingObjects returns the objects of a component that the AppWrapper controls. It reads from the API server if the cache has none.
func (w *workloadReconciler) existingObjects(ctx context.Context, aw *awv1beta2.AppWrapper, index int) ([]observedObject, error) {
	status := &aw.Status.ComponentStatus[index]
	kind := kindOf(status)
	if status.Name == "" { // the CodeFlare operator announced components with generateName without a name
		list, err := w.listLabeled(ctx, aw, kind)
		var controlled []observedObject
		for i := range list {
			if controls(aw, &list[i]) {
				controlled = append(controlled, observedObject{object: &list[i], unwatched: true})
			}
		}
		return controlled, err
	}
	observed, err := w.findComponent(ctx, aw, index, false, func(o client.Object) bool { return controls(aw, o) })
	objectName := kind.Kind + " " + aw.Namespace + "/" + status.Name
	switch {
	case err != nil:
		return nil, err
	case observed.unreadable != nil && isUnserved(observed.unreadable):
		return nil, fmt.Errorf("%s cannot be read, since its kind is not served in this version: %w", objectName, observed.unreadable)
	case observed.unreadable != nil:
		return nil, fmt.Errorf("%s cannot be read: grant the ServiceAccount of the operator the verbs get and delete on it: %w", objectName, observed.unreadable)
	case observed.object == nil:
		return nil, nil
	}
	return []observedObject{observed}, nil
}

// needsDelete reports whether a delete request may have an effect: the first request, or a forced one unless the grace period is 0.
func needsDelete(object client.Object, force bool) bool {
	return object.GetDeletionTimestamp() == nil || force && ptr.Deref(object.GetDeletionGracePeriodSeconds(), 1) > 0
}

// deleteObject deletes an object if needsDelete.
func (w *workloadReconciler) deleteObject(ctx context.Context, kind schema.GroupVersionKind, object client.Object, force bool) error {
	if !needsDelete(object, force) {
		return nil
	}
	var options []client.DeleteOption
	if force {
		options = append(options, client.GracePeriodSeconds(0))
	}
	err := w.applier.Delete(ctx, kind, client.ObjectKeyFromObject(object), object.GetUID(), options...)
	if err == nil || apierrors.IsNotFound(err) && !isUnserved(err) || apierrors.IsConflict(err) {
		return nil // deleted, or recreated under the same name
	}
	return fmt.Errorf("deleting %s %s: %w", kind.Kind, object.GetName(), err)
}

// deletePods counts the remaining pods, and deletes them if force is set. If the cache holds no pod and no object remains, it reads from the
// API server, because the quota is released next.
func (w *workloadReconciler) deletePods(ctx context.Context, aw *awv1beta2.AppWrapper, force bool, progress *rules.Deletion) error {
	pods, err := w.pods(ctx, aw)
	if err != nil {
		return err
	}
	progress.Pods = len(pods)
	if len(pods) == 0 && progress.Objects == 0 {
		return w.countUncachedPods(ctx, aw, progress)
	}
	if !force {
		return nil
	}
	var errs []error
	for i := range pods {
		errs = append(errs, w.deleteObject(ctx, podKind, &pods[i], true))
	}
	return errors.Join(errs...)
}

// countUncachedPods counts at most one labeled pod that the cache does not hold yet, because one pod suffices to retain the quota.
func (w *workloadReconciler) countUncachedPods(ctx context.Context, aw *awv1beta2.AppWrapper, progress *rules.Deletion) error {
	remaining, err := w.listLabeled(ctx, aw, podKind, client.Limit(1))
	progress.Pods = len(remaining)
	progress.Unwatched = progress.Unwatched || progress.Pods > 0
	return err
}
