package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// page is how many objects are listed at a time.
const page = 100

// Annotations of an object that was written back. They are those that clusters know.
const (
	markerPrefix    = "storage-migration.opendatahub.io/migrated-"
	versionMigrated = "storage-migration.opendatahub.io/last-migrated-rv"
)

// rewrite writes every object back as it is. It goes on after an error and joins them; what was written before costs no
// write when it is tried again.
func (m *Migration) rewrite(ctx context.Context) error {
	var errs []error
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(m.kind("List"))
		if err := m.Reader.List(ctx, list, client.Limit(page), client.Continue(next)); err != nil {
			return errors.Join(append(errs, fmt.Errorf("listing ModelRegistry objects: %w", err))...)
		}
		for i := range list.Items {
			object := &list.Items[i]
			object.SetGroupVersionKind(m.kind(""))
			if err := m.writeBack(ctx, object); err != nil {
				errs = append(errs, fmt.Errorf("writing ModelRegistry %s/%s back: %w", object.Namespace, object.Name, err))
			}
		}
		if next = list.Continue; next == "" {
			return errors.Join(errs...)
		}
	}
}

func (m *Migration) kind(suffix string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: v1beta1.GroupVersion.Group, Version: m.Target, Kind: v1beta1.Kind + suffix}
}

// writeBack sends an object the patch that makes the API server write it in the version that it stores now. What is marked
// gets a patch without content: the mark may be older than the last change of the stored version, and where it is not,
// nothing is written. An object that admission refuses is written through its status, at which admission does not look.
func (m *Migration) writeBack(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	patch := []byte("{}")
	marker := markerPrefix + m.Source + "-to-" + m.Target
	if _, marked := object.Annotations[marker]; !marked {
		var err error
		patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
			marker: m.Clock.Now().UTC().Format(time.RFC3339), versionMigrated: object.ResourceVersion,
		}}})
		if err != nil {
			return fmt.Errorf("encoding the mark: %w", err)
		}
	}
	err := m.Client.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		m.Log.Info("Admission refuses an object as it is; writing it back through its status",
			"namespace", object.Namespace, "name", object.Name, "reason", err.Error())
		err = m.Client.Status().Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte("{}")))
	}
	return client.IgnoreNotFound(err)
}
