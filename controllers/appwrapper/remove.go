package appwrapper

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper/rules"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// remains is what a call of the clean-up found of one component.
type remains struct {
	object client.Object // nil when it is gone
	blind  bool
}

// remove deletes what this AppWrapper controls, components before pods, and tells what is left. It never waits: what it
// started is checked by the next call. Forced, it grants no grace period, and ends pods whose owners cannot make new ones.
func (w *workloads) remove(ctx context.Context, aw *awv1beta2.AppWrapper, force bool) *rules.Deletion {
	out := &rules.Deletion{}
	standing := 0 // components that do not even bear a deletion timestamp
	var unknown unservedComponents
	for i := range aw.Status.ComponentStatus {
		left, err := w.removeOne(ctx, aw, i, force)
		if unserved(err) && force {
			unknown.indexes, unknown.cause = append(unknown.indexes, i), err
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
	w.removeRest(ctx, aw, force, unknown, out)
	return out
}

// unservedComponents are those of kinds that the API server does not know any more, such as one whose CRD was removed.
type unservedComponents struct {
	indexes []int
	cause   error
}

// removeRest removes the pods when the components are gone. Nothing is left of a component that cannot be asked for when no pods
// are. Where there are pods its object may live on in another version, and would make new ones.
func (w *workloads) removeRest(ctx context.Context, aw *awv1beta2.AppWrapper, force bool, unknown unservedComponents, out *rules.Deletion) {
	out.Trouble = errors.Join(out.Trouble, w.removePods(ctx, aw, force && unknown.cause == nil, out))
	if out.Pods > 0 {
		out.Trouble = errors.Join(out.Trouble, unknown.cause)
	}
	if !out.Finished() {
		return
	}
	for _, i := range unknown.indexes {
		setComponent(&aw.Status.ComponentStatus[i], metav1.ConditionFalse, awv1beta2.ReasonComponentDeletedTypo, "", w.settings.Clock.Now())
	}
}

// removeOne deletes one component, which are several objects in the rare case that its name is not known.
func (w *workloads) removeOne(ctx context.Context, aw *awv1beta2.AppWrapper, index int, force bool) ([]remains, error) {
	status := &aw.Status.ComponentStatus[index]
	if stageOf(status) == rules.Fresh || status.Kind == "" {
		return nil, nil
	}
	found, err := w.find(ctx, aw, index)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if err := w.deleteObject(ctx, kindOf(status), r.object, force); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		setComponent(status, metav1.ConditionFalse, awv1beta2.ReasonComponentDeletedTypo, "", w.settings.Clock.Now())
	}
	return found, nil
}

// find returns what exists of a component. Only the API server is believed when it says that there is nothing.
func (w *workloads) find(ctx context.Context, aw *awv1beta2.AppWrapper, index int) ([]remains, error) {
	status := &aw.Status.ComponentStatus[index]
	kind := kindOf(status)
	if status.Name == "" { // the original announced objects with a generated name so
		list, err := w.ours(ctx, aw, kind)
		var out []remains
		for i := range list {
			out = append(out, remains{object: &list[i], blind: true})
		}
		return out, err
	}
	key := types.NamespacedName{Namespace: aw.Namespace, Name: status.Name}
	seen, err := w.kinds.look(ctx, kind, key)
	if err == nil && !seen.live && (seen.object == nil || !controls(aw, seen.object)) {
		seen, err = w.kinds.ask(ctx, kind, key)
	}
	switch {
	case err != nil:
		return nil, err
	case seen.unreadable:
		return nil, unreadable(kind.Kind, key.String(), seen.cause)
	case seen.object == nil, !controls(aw, seen.object):
		return nil, nil
	}
	return []remains{{seen.object, seen.blind}}, nil
}

// unreadable explains why it is not known whether an object exists.
func unreadable(kind, name string, cause error) error {
	if unserved(cause) {
		return fmt.Errorf("%s %s cannot be read, since its kind is not served in this version: %w", kind, name, cause)
	}
	return fmt.Errorf("%s %s may not be read: grant the service account of the operator get and delete on it: %w", kind, name, cause)
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
	err := w.applier.Delete(ctx, kind, client.ObjectKeyFromObject(object), object.GetUID(), grace(force))
	if err == nil || gone(err) {
		return nil
	}
	return fmt.Errorf("deleting %s %s: %w", kind.Kind, object.GetName(), err)
}

// grace is no period when forced, and what the kind grants otherwise.
func grace(force bool) *int64 {
	if !force {
		return nil
	}
	return new(int64(0))
}

// gone: the object does not exist any more, or another one has its name.
func gone(err error) bool {
	return apierrors.IsNotFound(err) && !unserved(err) || apierrors.IsConflict(err)
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
