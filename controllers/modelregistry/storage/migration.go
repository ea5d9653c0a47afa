package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

const (
	// crdName is the CRD whose objects are migrated.
	crdName = "modelregistries.modelregistry.opendatahub.io"
	// The first retry is early, because the conversion webhook may not be ready when the manager starts.
	minRetryInterval = time.Second
	maxRetryInterval = 10 * time.Minute
)

// Migration migrates stored objects. It is a manager.Runnable that runs on the leader. All fields but Source and Target are required.
type Migration struct {
	// Reader is a client without cache.
	Reader client.Reader
	// Client patches objects and the status of the CRD.
	Client client.Client
	Clock  clock.Clock
	Log    logr.Logger
	// Source and Target are versions of ModelRegistry. If they are equal or one is empty, no object is migrated.
	Source, Target string
}

// Start implements manager.Runnable. It retries failures and always returns nil.
func (m *Migration) Start(ctx context.Context) error {
	if m.Source != m.Target && m.Source != "" && m.Target != "" {
		servers.Retry(ctx, m.Clock, minRetryInterval, maxRetryInterval, m.run, func(err error, after time.Duration) {
			m.Log.Error(err, "Migrating stored ModelRegistry objects failed; retrying", "after", after)
		})
	}
	return nil
}

// run migrates all objects once, if any may be stored in the source version.
func (m *Migration) run(ctx context.Context) error {
	if crd, err := m.getCRD(ctx); err != nil || crd == nil {
		return err
	}
	if err := m.rewriteObjects(ctx); err != nil {
		return err
	}
	return m.trimStoredVersions(ctx)
}

// getCRD returns the CRD if objects may be stored in the source version, or nil. It returns an error if Target is not the storage
// version.
func (m *Migration) getCRD(ctx context.Context) (*unstructured.Unstructured, error) {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(certs.Conversion)
	err := m.Reader.Get(ctx, types.NamespacedName{Name: crdName}, crd)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", crdName, err)
	}
	if !slices.Contains(storedVersions(crd), m.Source) {
		return nil, nil
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		if fields["storage"] == true && fields["name"] != m.Target {
			return nil, fmt.Errorf("CustomResourceDefinition %s stores %v and not %s: apply the CustomResourceDefinition of this release",
				crdName, fields["name"], m.Target)
		}
	}
	return crd, nil
}

func storedVersions(crd *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	return versions
}

// trimStoredVersions removes the source version from status.storedVersions, with optimistic locking.
func (m *Migration) trimStoredVersions(ctx context.Context) error {
	crd, err := m.getCRD(ctx)
	if err != nil || crd == nil {
		return err
	}
	remaining := slices.DeleteFunc(storedVersions(crd), func(v string) bool { return v == m.Source })
	if len(remaining) == 0 { // the API server rejects an empty list
		remaining = []string{m.Target}
	}
	patch, _ := json.Marshal(map[string]any{ // strings: encoding cannot fail
		"metadata": map[string]any{"resourceVersion": crd.GetResourceVersion()},
		"status":   map[string]any{"storedVersions": remaining},
	})
	if err := m.Client.Status().Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("removing %s from status.storedVersions of CustomResourceDefinition %s: %w", m.Source, crdName, err)
	}
	m.Log.Info("Migrated the stored objects", "kind", v1beta1.Kind, "from", m.Source, "to", m.Target)
	return nil
}

// pageSize is the limit of a list request.
const pageSize = 100

// Annotations of a migrated object. They are those of the legacy operator.
const (
	migratedAnnotationPrefix = "storage-migration.opendatahub.io/migrated-"
	lastMigratedAnnotation   = "storage-migration.opendatahub.io/last-migrated-rv"
)

// rewriteObjects patches every object without a change of its spec, and joins the errors. A retry does not write the objects that are
// already in the storage version.
func (m *Migration) rewriteObjects(ctx context.Context) error {
	var errs []error
	for token := ""; ; {
		list := objectmeta.NewList(m.kind())
		if err := m.Reader.List(ctx, list, client.Limit(pageSize), client.Continue(token)); err != nil {
			return errors.Join(append(errs, fmt.Errorf("listing ModelRegistry objects: %w", err))...)
		}
		for i := range list.Items {
			object := &list.Items[i]
			object.SetGroupVersionKind(m.kind())
			if err := m.rewriteObject(ctx, object); err != nil {
				errs = append(errs, fmt.Errorf("rewriting ModelRegistry %s/%s: %w", object.Namespace, object.Name, err))
			}
		}
		if token = list.Continue; token == "" {
			return errors.Join(errs...)
		}
	}
}

func (m *Migration) kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: v1beta1.GroupVersion.Group, Version: m.Target, Kind: v1beta1.Kind}
}

// rewriteObject sends a patch that makes the API server store an object in the storage version. An annotated object gets an empty patch,
// which is only written if the object is stored in another version. An object rejected by admission is patched through its status, which
// admission does not check.
func (m *Migration) rewriteObject(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	patch := []byte("{}")
	marker := migratedAnnotationPrefix + m.Source + "-to-" + m.Target
	if _, migrated := object.Annotations[marker]; !migrated {
		patch, _ = json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{ // strings: encoding cannot fail
			marker: m.Clock.Now().UTC().Format(time.RFC3339), lastMigratedAnnotation: object.ResourceVersion,
		}}})
	}
	err := m.Client.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		m.Log.Info("Admission rejects the stored object; rewriting it with a patch of its status",
			"namespace", object.Namespace, "name", object.Name, "reason", err.Error())
		err = m.Client.Status().Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte("{}")))
	}
	return client.IgnoreNotFound(err)
}
