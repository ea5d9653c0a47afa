package modelregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// The volume and credentials of a generated database hold user data. They are created once, the spec can only expand the volume, and they
// have no owner reference by default. Removing the reference in the finalizer would be too late: in a foreground deletion, the garbage
// collector deletes dependents before it waits for finalizers.

// credentials are the user and database of a generated database, without the password. uid and resourceVersion identify the Secret that was
// read; retainsData is the retention policy at that time.
type credentials struct {
	uid             types.UID
	resourceVersion string
	retainsData     bool
	user, database  string
}

// ensureData ensures credentials and volumes of a generated database. Credentials come first, because the claim is annotated
// with their user. Without a generated database, it applies the retention policy to data of an earlier spec.
func (r *registryReconciler) ensureData(ctx context.Context, m *v1beta1.ModelRegistry) error {
	s := r.stateOf(m)
	s.backupBlocked, s.recheck = nil, time.Time{}
	if !generatesDatabase(m) {
		reportStorage(m)
		r.reportEarlierData(m, nil)
		c := meta.FindStatusCondition(m.Status.Conditions, ConditionAvailable)
		// The legacy operator does not set observedGeneration.
		reconciled := m.Status.ObservedGeneration == m.Generation && c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Generation
		isFirst := m.Generation == 1 // no earlier spec of this registry generated a database
		owned, err := r.hasOwnedRetainedData(ctx, m)
		if err != nil || !owned && (isFirst || reconciled || s.orphanedGeneration == m.Generation) {
			return err
		}
		_, err = r.updateDataOwners(ctx, m)
		if err == nil {
			s.orphanedGeneration = m.Generation
		}
		return err
	}
	s.orphanedGeneration = 0
	if err := r.ensureCredentials(ctx, m); err != nil {
		return err
	}
	data, err := r.ensureClaim(ctx, m)
	backups, backupErr := r.ensureBackupClaim(ctx, m)
	reportStorage(m, data, backups)
	return errors.Join(err, backupErr)
}

// ensureCredentials creates the Secret, or updates its metadata and reads it if it has changed.
func (r *registryReconciler) ensureCredentials(ctx context.Context, m *v1beta1.ModelRegistry) error {
	key := client.ObjectKey{Namespace: m.Namespace, Name: resources.CredentialsName(m)}
	metadata, err := objectmeta.Get(ctx, r.Cached, servers.Secret, key)
	if err != nil {
		return err
	}
	stored := &r.stateOf(m).credentials
	if metadata != nil && stored.uid == metadata.UID && stored.resourceVersion == metadata.ResourceVersion && stored.retainsData == retainsData(m) {
		return nil
	}
	secret := &corev1.Secret{}
	err = r.APIReader.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		if err := r.createCredentials(ctx, m); err != nil {
			return err
		}
		err = r.APIReader.Get(ctx, key, secret)
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return r.storeCredentials(ctx, m, secret)
}

// requestedCredentials returns the credentials of a new database.
func requestedCredentials(m *v1beta1.ModelRegistry) credentials {
	return credentials{
		user: cmp.Or(m.Spec.Postgres.Username, resources.DefaultDatabaseUser), database: cmp.Or(m.Spec.Postgres.Database, resources.DefaultDatabase),
	}
}

func (r *registryReconciler) createCredentials(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if err := errors.Join(resources.CheckIdentifier("spec.postgres.username", m.Spec.Postgres.Username),
		resources.CheckIdentifier("spec.postgres.database", m.Spec.Postgres.Database)); err != nil {
		return rejectSpec(m, err)
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.ClaimName(m)}, claim)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading PersistentVolumeClaim %s: %w", resources.ClaimName(m), err)
	}
	creds := requestedCredentials(m)
	if annotations := claim.Annotations; annotations[annotationUser] != "" { // the Secret was deleted, but the database still has this user
		creds.user, creds.database = annotations[annotationUser], annotations[annotationDatabase]
		if err := errors.Join(resources.CheckIdentifier("annotation "+annotationUser+" of PersistentVolumeClaim "+claim.Name, creds.user),
			resources.CheckIdentifier("annotation "+annotationDatabase+" of PersistentVolumeClaim "+claim.Name, creds.database)); err != nil {
			return rejectSpec(m, err)
		}
	}
	return r.Applier.Create(ctx, m, resources.CredentialsSecret(m, creds.user, creds.database, pkgresources.NewPassword()))
}

// storeCredentials stores the credentials of a Secret and updates its metadata if it is managed.
func (r *registryReconciler) storeCredentials(ctx context.Context, m *v1beta1.ModelRegistry, secret *corev1.Secret) error {
	for _, key := range []string{resources.KeyUsername, resources.KeyPassword} {
		if len(secret.Data[key]) == 0 {
			return fmt.Errorf("the Secret %s of the generated database has no key %s: add the key, or delete the Secret, and the operator creates a new one", secret.Name, key)
		}
	}
	if isManaged(secret) {
		if err := r.Applier.PatchExisting(ctx, secret, func() { updateDataMetadata(secret, m) }); err != nil {
			return err
		}
	}
	r.stateOf(m).credentials = credentials{
		uid: secret.UID, resourceVersion: secret.ResourceVersion, retainsData: retainsData(m),
		user: string(secret.Data[resources.KeyUsername]), database: cmp.Or(string(secret.Data[resources.KeyDatabase]), resources.DefaultDatabase),
	}
	return nil
}

// hasOwnedRetainedData reports whether data that must be retained has an owner reference to a registry, according to the cache.
func (r *registryReconciler) hasOwnedRetainedData(ctx context.Context, m *v1beta1.ModelRegistry) (bool, error) {
	for name, kind := range map[string]schema.GroupVersionKind{resources.CredentialsName(m): servers.Secret, resources.ClaimName(m): servers.Claim} {
		object, err := objectmeta.Get(ctx, r.Cached, kind, client.ObjectKey{Namespace: m.Namespace, Name: name})
		if err != nil {
			return false, err
		}
		if object != nil && retainsData(m) && slices.ContainsFunc(object.OwnerReferences, isRegistryReference) {
			return true, nil
		}
	}
	return false, nil
}

// updateDataOwners removes or sets the owner references of volume and credentials as the retention policy requires. It reports
// whether data is retained.
func (r *registryReconciler) updateDataOwners(ctx context.Context, m *v1beta1.ModelRegistry) (retained bool, err error) {
	for name, object := range map[string]client.Object{resources.CredentialsName(m): &corev1.Secret{}, resources.ClaimName(m): &corev1.PersistentVolumeClaim{}} {
		err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, object)
		if client.IgnoreNotFound(err) != nil {
			return retained, fmt.Errorf("reading %s: %w", name, err)
		}
		if err != nil || !isManaged(object) {
			continue
		}
		retained = retained || retainsData(m)
		if err := r.Applier.PatchExisting(ctx, object, func() { updateDataMetadata(object, m) }); err != nil {
			return retained, err
		}
	}
	return retained, nil
}

// isManaged reports whether an object has the label of this operator or of the legacy one, or an owner reference to a registry. Field
// managers do not count: a user removes the labels and the owner reference to keep the data.
func isManaged(object client.Object) bool {
	return object.GetLabels()[names.OperatorLabel] == names.OperatorName || object.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy ||
		slices.ContainsFunc(object.GetOwnerReferences(), isRegistryReference)
}

// updateDataMetadata sets the labels and owner references of volume or credentials, and removes servers.LegacyCopyAnnotation.
func updateDataMetadata(object client.Object, m *v1beta1.ModelRegistry) {
	updateLabels(object, names.Labels(ComponentName))
	object.SetOwnerReferences(servers.DataOwnerReferences(object, m, registryKind, retainsData(m)))
}

// updateLabels sets labels, and removes servers.LegacyCopyAnnotation.
func updateLabels(object client.Object, desired map[string]string) {
	object.SetLabels(labels.Merge(object.GetLabels(), desired))
	annotations := object.GetAnnotations()
	delete(annotations, servers.LegacyCopyAnnotation)
	object.SetAnnotations(annotations)
}

// retainsData reports whether data outlives its registry, which is the default.
func retainsData(m *v1beta1.ModelRegistry) bool {
	return m.Spec.Postgres == nil || m.Spec.Postgres.RetentionPolicy != v1beta1.DeleteData
}

var registryKind = v1beta1.GroupVersion.WithKind(v1beta1.Kind)

func isRegistryReference(ref metav1.OwnerReference) bool { return servers.RefersTo(ref, registryKind) }

// setConnection replaces the spec of a generated database by the connection to it, without other connection settings of the spec.
func setConnection(m *v1beta1.ModelRegistry, creds credentials) {
	requested := m.Spec.Postgres
	m.Spec.Postgres = &v1beta1.PostgresConfig{
		Host:            resources.DatabaseName(m),
		Port:            new(v1beta1.DefaultPostgresPort),
		Username:        creds.user,
		Database:        creds.database,
		PasswordSecret:  &v1beta1.SecretKeyValue{Name: resources.CredentialsName(m), Key: resources.KeyPassword},
		Image:           requested.Image,
		RetentionPolicy: requested.RetentionPolicy,
		Storage:         requested.Storage,
		Resources:       requested.Resources,
		ServerTLS:       requested.ServerTLS,
		MajorVersion:    requested.MajorVersion,
		Backup:          requested.Backup,
	}
	if resources.EncryptsDatabase(m) {
		m.Spec.Postgres.SSLMode = pkgresources.VerifyFull
		m.Spec.Postgres.SSLRootCertificateSecret = &v1beta1.SecretKeyValue{Name: resources.DatabaseTLSName(m), Key: pkgresources.CAKey}
	}
}
