package modelregistry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	userv1 "github.com/openshift/api/user/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// The Group of a registry holds what administrators put into it. Its list of users is made empty, because the API demands one,
// and is never written again: not even as a field that a server-side apply gives up. So it is created, and adjusted in its labels.

func isGroup(o apply.Object) bool {
	kind, _, err := o.Place()
	return err == nil && kind == capability.UserGroup
}

func groupLabels(m *v1beta1.ModelRegistry) map[string]string {
	all := resources.ClusterLabels(m, resources.UsersName(m))
	maps.Copy(all, names.Labels(ComponentName))
	return all
}

// keepGroup makes the Group, or puts the labels of the one that is there right.
func (r *registries) keepGroup(ctx context.Context, m *v1beta1.ModelRegistry) error {
	want, key := groupLabels(m), client.ObjectKey{Name: resources.UsersName(m)}
	head := metadataOf(capability.UserGroup)
	err := r.cached.Get(ctx, key, head)
	if err == nil && bears(head, want) {
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading metadata of Group %s: %w", key.Name, err)
	}
	live := wholeObject(capability.UserGroup)
	err = r.live.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		return r.applier.Create(ctx, m, apply.Object{Config: resources.Group(m, userv1.OptionalNames{}), Ownership: apply.Unowned})
	}
	if err != nil {
		return fmt.Errorf("reading Group %s: %w", key.Name, err)
	}
	if err := r.servesAnother(ctx, m, live); err != nil {
		return err
	}
	if !madeByUs(live) {
		foreign := foreignError(live)
		return &apply.Error{Kind: foreign.Kind, Name: foreign.Name, Err: foreign}
	}
	return r.applier.Adjust(ctx, live, func() {
		marks := maps.Clone(want)
		for key, value := range live.GetLabels() {
			if _, ours := marks[key]; !ours {
				marks[key] = value
			}
		}
		live.SetLabels(marks)
		annotations := live.GetAnnotations()
		delete(annotations, LastApplied)
		live.SetAnnotations(annotations)
	})
}

// madeByUs says whether an object bears a sign of this operator or of the one that it replaces. Labels may have been taken away.
func madeByUs(object client.Object) bool {
	return !apply.OfAnother(object, ComponentName) && (object.GetLabels()[names.OperatorLabel] == names.OperatorName ||
		object.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy ||
		slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == FieldOwner }))
}

// bears says whether an object has all these labels, and no copy of itself in an annotation.
func bears(object client.Object, want map[string]string) bool {
	_, copied := object.GetAnnotations()[LastApplied]
	return !copied && labels.SelectorFromSet(want).Matches(labels.Set(object.GetLabels()))
}
