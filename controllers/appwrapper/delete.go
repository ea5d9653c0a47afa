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

// deleteComponents deletes the objects that this AppWrapper controls, components before pods, and returns the remaining numbers. It does not
// wait. With force it sets a grace period of 0, and deletes pods after their owners.
func (w *workloadReconciler) deleteComponents(ctx context.Context, aw *awv1beta2.AppWrapper, force bool) *rules.Deletion {
	out := &rules.Deletion{}
	notTerminating := 0   // number of components without a deletionTimestamp
	var unreachable []int // indexes of components of kinds that are no longer served
	var unreachableErr error
	for i := range aw.Status.ComponentStatus {
		remaining, err := w.deleteComponent(ctx, aw, i, force)
		if w.isUnreachable(ctx, aw, i, err, force) {
			unreachable, unreachableErr = append(unreachable, i), err
			continue
		}
		if err != nil {
			out.Objects++
			notTerminating++
			out.Err = errors.Join(out.Err, err)
		}
		for _, r := range remaining {
			out.Objects++
			out.Unwatched = out.Unwatched || r.unwatched
			if r.object.GetDeletionTimestamp() == nil {
				notTerminating++
			}
		}
	}
	if out.Objects > 0 && (!force || notTerminating > 0) {
		return out
	}
	w.deleteRemaining(ctx, aw, force, unreachable, unreachableErr, out)
	return out
}

// isUnreachable reports whether a component can no longer be read: its API was deleted, or deletion is forced while it is not served.
func (w *workloadReconciler) isUnreachable(ctx context.Context, aw *awv1beta2.AppWrapper, index int, err error, force bool) bool {
	return isUnserved(err) && (force || w.kinds.stopIfAPIDeleted(ctx, kindOf(&aw.Status.ComponentStatus[index])))
}

// deleteRemaining deletes the pods after the components. Components of unserved kinds count as deleted only when no pod is left, because their
// objects may exist in another version and create new pods.
func (w *workloadReconciler) deleteRemaining(ctx context.Context, aw *awv1beta2.AppWrapper, force bool, unreachable []int, unreachableErr error, out *rules.Deletion) {
	out.Err = errors.Join(out.Err, w.deletePods(ctx, aw, force && unreachableErr == nil, out))
	if out.Pods > 0 {
		out.Err = errors.Join(out.Err, unreachableErr)
	}
	if out.Finished() {
		w.setDeleted(aw, unreachable...)
	}
}

// setDeleted sets the status of deleted components.
func (w *workloadReconciler) setDeleted(aw *awv1beta2.AppWrapper, indexes ...int) {
	for _, i := range indexes {
		setResourcesDeployed(&aw.Status.ComponentStatus[i], metav1.ConditionFalse, awv1beta2.ReasonComponentDeletedTypo, "", w.settings.Clock.Now())
	}
}

// deleteComponent deletes the object of a component, or several if its name is unknown.
func (w *workloadReconciler) deleteComponent(ctx context.Context, aw *awv1beta2.AppWrapper, index int, force bool) ([]observedObject, error) {
	status := &aw.Status.ComponentStatus[index]
	if stageOf(status) == rules.NotCreated || status.Kind == "" {
		return nil, nil
	}
	found, err := w.existingObjects(ctx, aw, index)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if err := w.deleteObject(ctx, kindOf(status), r.object, force); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		w.setDeleted(aw, index)
	}
	return found, nil
}

// existingObjects returns the objects of a component. It reads from the API server if the cache has none.
func (w *workloadReconciler) existingObjects(ctx context.Context, aw *awv1beta2.AppWrapper, index int) ([]observedObject, error) {
	status := &aw.Status.ComponentStatus[index]
	kind := kindOf(status)
	if status.Name == "" { // the CodeFlare operator announced components with generateName without a name
		list, err := w.listLabelled(ctx, aw, kind)
		var out []observedObject
		for i := range list {
			if controls(aw, &list[i]) {
				out = append(out, observedObject{object: &list[i], unwatched: true})
			}
		}
		return out, err
	}
	observed, err := w.findComponent(ctx, aw, index, false, func(o client.Object) bool { return controls(aw, o) })
	title := kind.Kind + " " + aw.Namespace + "/" + status.Name
	switch {
	case err != nil:
		return nil, err
	case observed.unreadable != nil && isUnserved(observed.unreadable):
		return nil, fmt.Errorf("%s cannot be read, since its kind is not served in this version: %w", title, observed.unreadable)
	case observed.unreadable != nil:
		return nil, fmt.Errorf("%s cannot be read: grant the ServiceAccount of the operator the verbs get and delete on it: %w", title, observed.unreadable)
	case observed.object == nil:
		return nil, nil
	}
	return []observedObject{observed}, nil
}

// needsDelete reports whether a delete request has an effect: the first request, or a forced one while a grace period remains.
func needsDelete(object client.Object, force bool) bool {
	return object.GetDeletionTimestamp() == nil || force && ptr.Deref(object.GetDeletionGracePeriodSeconds(), 1) > 0
}

// deleteObject deletes an object, if that has an effect.
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

// deletePods counts the remaining pods, and deletes them if force is set. The API server confirms that no pod is left, because quota is then
// released.
func (w *workloadReconciler) deletePods(ctx context.Context, aw *awv1beta2.AppWrapper, force bool, out *rules.Deletion) error {
	pods, err := w.pods(ctx, aw)
	if err != nil {
		return err
	}
	out.Pods = len(pods)
	if len(pods) == 0 && out.Objects == 0 {
		return w.countPods(ctx, aw, out)
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

// countPods counts labelled pods that the cache does not hold yet.
func (w *workloadReconciler) countPods(ctx context.Context, aw *awv1beta2.AppWrapper, out *rules.Deletion) error {
	remaining, err := w.listLabelled(ctx, aw, podKind, client.Limit(1))
	out.Pods = len(remaining)
	out.Unwatched = out.Unwatched || out.Pods > 0
	return err
}
