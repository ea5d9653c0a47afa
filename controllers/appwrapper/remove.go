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

// remove deletes what this AppWrapper controls, components before pods, and tells what is left. It never waits: what it
// started is checked by the next call. Forced, it grants no grace period, and ends pods whose owners cannot make new ones.
func (w *workloads) remove(ctx context.Context, aw *awv1beta2.AppWrapper, force bool) *rules.Deletion {
	out := &rules.Deletion{}
	standing := 0     // components that do not even bear a deletion timestamp
	var unknown []int // components of kinds that the API server does not know any more
	var unknownWhy error
	for i := range aw.Status.ComponentStatus {
		left, err := w.removeOne(ctx, aw, i, force)
		if w.lost(ctx, aw, i, err, force) {
			unknown, unknownWhy = append(unknown, i), err
			continue
		}
		if err != nil {
			out.Objects++
			standing++
			out.Trouble = errors.Join(out.Trouble, err)
		}
		for _, r := range left {
			out.Objects++
			out.Blind = out.Blind || r.blind
			if r.object.GetDeletionTimestamp() == nil {
				standing++
			}
		}
	}
	if out.Objects > 0 && (!force || standing > 0) {
		return out
	}
	w.removeRest(ctx, aw, force, unknown, unknownWhy, out)
	return out
}

// lost reports whether nothing can be asked of a component any more: its API was deleted, or deletion is forced while it is not served.
func (w *workloads) lost(ctx context.Context, aw *awv1beta2.AppWrapper, index int, err error, force bool) bool {
	return unserved(err) && (force || w.kinds.forgetDeleted(ctx, kindOf(&aw.Status.ComponentStatus[index])))
}

// removeRest removes the pods when the components are gone. Nothing is left of a component that cannot be asked for when no pods
// are. Where there are pods its object may live on in another version, and would make new ones.
func (w *workloads) removeRest(ctx context.Context, aw *awv1beta2.AppWrapper, force bool, unknown []int, unknownWhy error, out *rules.Deletion) {
	out.Trouble = errors.Join(out.Trouble, w.removePods(ctx, aw, force && unknownWhy == nil, out))
	if out.Pods > 0 {
		out.Trouble = errors.Join(out.Trouble, unknownWhy)
	}
	if out.Finished() {
		w.setDeleted(aw, unknown...)
	}
}

// setDeleted notes that components are gone.
func (w *workloads) setDeleted(aw *awv1beta2.AppWrapper, indexes ...int) {
	for _, i := range indexes {
		setComponent(&aw.Status.ComponentStatus[i], metav1.ConditionFalse, awv1beta2.ReasonComponentDeletedTypo, "", w.settings.Clock.Now())
	}
}

// removeOne deletes one component, which are several objects in the rare case that its name is not known.
func (w *workloads) removeOne(ctx context.Context, aw *awv1beta2.AppWrapper, index int, force bool) ([]sighting, error) {
	status := &aw.Status.ComponentStatus[index]
	if stageOf(status) == rules.Fresh || status.Kind == "" {
		return nil, nil
	}
	found, err := w.remaining(ctx, aw, index)
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

// remaining returns what exists of a component. Only the API server is believed when it says that there is nothing.
func (w *workloads) remaining(ctx context.Context, aw *awv1beta2.AppWrapper, index int) ([]sighting, error) {
	status := &aw.Status.ComponentStatus[index]
	kind := kindOf(status)
	if status.Name == "" { // the original announced objects with a generated name so
		list, err := w.ours(ctx, aw, kind)
		var out []sighting
		for i := range list {
			out = append(out, sighting{object: &list[i], blind: true})
		}
		return out, err
	}
	seen, err := w.find(ctx, aw, index, false, func(o client.Object) bool { return controls(aw, o) })
	title := kind.Kind + " " + aw.Namespace + "/" + status.Name
	switch {
	case err != nil:
		return nil, err
	case seen.unreadable != nil && unserved(seen.unreadable):
		return nil, fmt.Errorf("%s cannot be read, since its kind is not served in this version: %w", title, seen.unreadable)
	case seen.unreadable != nil:
		return nil, fmt.Errorf("%s may not be read: grant the service account of the operator get and delete on it: %w", title, seen.unreadable)
	case seen.object == nil:
		return nil, nil
	}
	return []sighting{seen}, nil
}

// deletable reports whether a deletion has to be sent: once, and by force while the object has a grace period left.
func deletable(object client.Object, force bool) bool {
	return object.GetDeletionTimestamp() == nil || force && ptr.Deref(object.GetDeletionGracePeriodSeconds(), 1) > 0
}

// deleteObject sends one deletion where it has an effect.
func (w *workloads) deleteObject(ctx context.Context, kind schema.GroupVersionKind, object client.Object, force bool) error {
	if !deletable(object, force) {
		return nil
	}
	var grace *int64 // what the kind grants
	if force {
		grace = new(int64(0))
	}
	err := w.applier.Delete(ctx, kind, client.ObjectKeyFromObject(object), object.GetUID(), grace)
	if err == nil || apierrors.IsNotFound(err) && !unserved(err) || apierrors.IsConflict(err) {
		return nil // it does not exist any more, or another one has its name
	}
	return fmt.Errorf("deleting %s %s: %w", kind.Kind, object.GetName(), err)
}

// removePods counts the pods that are left, and deletes them when forced. Quota may be given back when there are none, so
// that is read from the API server.
func (w *workloads) removePods(ctx context.Context, aw *awv1beta2.AppWrapper, force bool, out *rules.Deletion) error {
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

// countPods asks the API server for labelled pods that the cache has not seen yet.
func (w *workloads) countPods(ctx context.Context, aw *awv1beta2.AppWrapper, out *rules.Deletion) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
	err := w.kinds.live.List(ctx, list, client.InNamespace(aw.Namespace), client.MatchingLabels{awv1beta2.LabelAppWrapper: aw.Name}, client.Limit(1))
	if err != nil {
		return fmt.Errorf("looking for pods that are left: %w", err)
	}
	out.Pods = len(list.Items)
	out.Blind = out.Blind || out.Pods > 0
	return nil
}
