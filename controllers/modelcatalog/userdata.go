package modelcatalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// isManaged reports whether an object has the labels of this component.
func isManaged(o metav1.Object) bool { return apply.HasComponentLabels(o, ComponentName) }

// isValidated reports whether the cached version of an object was validated before.
func (r *catalogReconciler) isValidated(ctx context.Context, c *aihubv1alpha1.Catalog, kind schema.GroupVersionKind, name string) (bool, error) {
	metadata, err := capability.GetMetadata(ctx, r.Cached, kind, client.ObjectKey{Namespace: c.Namespace, Name: name})
	return metadata != nil && r.stateOf(c.UID).validVersions[name] == objectVersion(metadata), err
}

// ensureUserSources creates the ConfigMaps in which users list sources, once, and removes the default entry of legacy releases. It reads
// each version of a ConfigMap once.
func (r *catalogReconciler) ensureUserSources(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	var errs []error
	for _, s := range resources.UserSources {
		if err := r.ensureUserSource(ctx, c, s.Name, s.Content); err != nil {
			errs = append(errs, fmt.Errorf("keeping ConfigMap %s: %w", s.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *catalogReconciler) ensureUserSource(ctx context.Context, c *aihubv1alpha1.Catalog, name, content string) error {
	key := client.ObjectKey{Namespace: c.Namespace, Name: name}
	if valid, err := r.isValidated(ctx, c, servers.ConfigMap, name); err != nil || valid {
		return err
	}
	live := &corev1.ConfigMap{}
	err := r.APIReader.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		return r.Applier.Create(ctx, c, apply.Object{Config: resources.UserSourcesConfigMap(c, name, content), Ownership: apply.Unowned})
	}
	if err != nil {
		return err
	}
	if err := r.Applier.PatchExisting(ctx, live, func() { cleanUserSources(ctx, live) }); err != nil {
		return err
	}
	r.stateOf(c.UID).validVersions[name] = objectVersion(live)
	return nil
}

// ensureDatabaseSecret creates the Secret of the database, or adopts a legacy one with its data, and adds missing keys.
func (r *catalogReconciler) ensureDatabaseSecret(ctx context.Context, c *aihubv1alpha1.Catalog) error {
	if !resources.OwnsDatabase(c, r.inputsOf(c)) {
		return nil
	}
	key := client.ObjectKey{Namespace: c.Namespace, Name: resources.DatabaseName}
	if valid, err := r.isValidated(ctx, c, servers.Secret, key.Name); err != nil || valid {
		return err
	}
	live := &corev1.Secret{}
	err := r.APIReader.Get(ctx, key, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if live.DeletionTimestamp != nil {
		return nil // the event of its deletion requeues the Catalog
	}
	data := withMissingKeys(live.Data, r.settings.CatalogPostgresUser, r.settings.CatalogPostgresDatabase)
	objects := withAdoption(apply.Desired{{Config: databaseSecret(c, live.Type, data), NeverDelete: true}})
	if err := r.Applier.Apply(ctx, c, objects); err != nil {
		return r.reportApplyError(c, err)
	}
	if live.UID != "" && isManaged(live) && metav1.IsControlledBy(live, c) && maps.EqualFunc(live.Data, data, slices.Equal[[]byte]) {
		r.stateOf(c.UID).validVersions[key.Name] = objectVersion(live)
	}
	return nil
}

// withMissingKeys returns the data of the Secret with missing keys added. Existing values are kept, because the database was created with
// them.
func withMissingKeys(data map[string][]byte, user, database string) map[string][]byte {
	out := maps.Clone(data)
	if out == nil {
		out = map[string][]byte{}
	}
	for key, value := range map[string]string{resources.KeyDatabase: database, resources.KeyUser: user} {
		if len(out[key]) == 0 {
			out[key] = []byte(value)
		}
	}
	if len(out[resources.KeyPassword]) == 0 {
		out[resources.KeyPassword] = []byte(common.NewPassword())
	}
	return out
}

// databaseSecret returns the Secret of the database. The type of an existing one is immutable.
func databaseSecret(c *aihubv1alpha1.Catalog, kind corev1.SecretType, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	if kind == "" {
		kind = corev1.SecretTypeOpaque
	}
	return corev1ac.Secret(resources.DatabaseName, c.Namespace).WithLabels(resources.Labels(resources.DatabaseName)).WithType(kind).WithData(data)
}
