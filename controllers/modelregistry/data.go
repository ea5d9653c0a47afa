package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Volume and credentials of a generated database hold data of users, so they are treated unlike every other child: they are
// created once, never respecified, and by default without an owner. An owner reference that were removed only on deletion
// would come too late for a foreground deletion, where the garbage collector removes dependents before it waits for finalizers.

// credentials are what stands in clear in the pods of server and database, with the version of the Secret that they were read from, and
// whether that was to outlive the registry; the password is never kept.
type credentials struct {
	uid             types.UID
	resourceVersion string
	retainsData     bool
	user, database  string
}

// keepData sees to credentials and volumes of a generated database, credentials first: those of the original lie open in an
// annotation. Data of before must not go with a registry that does not use it any more, by an owner reference that it may still have.
func (r *registryReconciler) ensureData(ctx context.Context, m *v1beta1.ModelRegistry) error {
	s := r.stateOf(m)
	s.backupBlocked = nil
	if !generatesDatabase(m) {
		reportStorage(m)
		r.reportEarlierData(m, nil)
		c := meta.FindStatusCondition(m.Status.Conditions, ConditionAvailable)
		// The original leaves both at 0.
		done := m.Status.ObservedGeneration == m.Generation && c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Generation
		if (done || s.orphanedGeneration == m.Generation) && !r.hasOwnedRetainedData(ctx, m) {
			return nil
		}
		_, err := r.updateDataOwners(ctx, m)
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
	backups, failed := r.ensureBackupClaim(ctx, m)
	reportStorage(m, data, backups)
	return errors.Join(err, failed)
}

// keepCredentials makes the Secret, or reads the one that is there when it has changed and puts its marks right.
func (r *registryReconciler) ensureCredentials(ctx context.Context, m *v1beta1.ModelRegistry) error {
	key := client.ObjectKey{Namespace: m.Namespace, Name: resources.CredentialsName(m)}
	head, err := capability.GetMetadata(ctx, r.cached, registry.Secret, key)
	if err != nil {
		return err
	}
	known := &r.stateOf(m).credentials
	if head != nil && known.uid == head.UID && known.resourceVersion == head.ResourceVersion && known.retainsData == retainsData(m) {
		return nil
	}
	secret := &corev1.Secret{}
	err = r.apiReader.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		if err := r.createCredentials(ctx, m); err != nil {
			return err
		}
		err = r.apiReader.Get(ctx, key, secret)
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return r.storeCredentials(ctx, m, secret)
}

// wishedCredentials are those that a new database gets.
func requestedCredentials(m *v1beta1.ModelRegistry) credentials {
	to := credentials{user: m.Spec.Postgres.Username, database: m.Spec.Postgres.Database}
	setDefault(&to.user, resources.DefaultDatabaseUser)
	setDefault(&to.database, resources.DefaultDatabase)
	return to
}

func (r *registryReconciler) createCredentials(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if err := errors.Join(resources.CheckIdentifier("spec.postgres.username", m.Spec.Postgres.Username),
		resources.CheckIdentifier("spec.postgres.database", m.Spec.Postgres.Database)); err != nil {
		return rejectSpec(m, err)
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := r.apiReader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.ClaimName(m)}, claim)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading PersistentVolumeClaim %s: %w", resources.ClaimName(m), err)
	}
	to := requestedCredentials(m)
	if made := claim.Annotations; made[annotationUser] != "" { // a lost Secret: the database knows who it was made for, and takes a new password only
		to.user, to.database = made[annotationUser], made[annotationDatabase]
	}
	return r.applier.Create(ctx, m, resources.CredentialsSecret(m, to.user, to.database, common.NewPassword()))
}

// takeCredentials puts the marks of a Secret of ours right and remembers what it says. A foreign one is used as it is.
func (r *registryReconciler) storeCredentials(ctx context.Context, m *v1beta1.ModelRegistry, secret *corev1.Secret) error {
	for _, key := range []string{resources.KeyUsername, resources.KeyPassword} {
		if len(secret.Data[key]) == 0 {
			return fmt.Errorf("the generated database has a Secret %s without the key %s: add it, or delete the Secret to have a new one made", secret.Name, key)
		}
	}
	if isManaged(secret) {
		if err := r.applier.PatchExisting(ctx, secret, func() { updateDataMetadata(secret, m) }); err != nil {
			return err
		}
	}
	read := credentials{
		uid: secret.UID, resourceVersion: secret.ResourceVersion, retainsData: retainsData(m),
		user: string(secret.Data[resources.KeyUsername]), database: string(secret.Data[resources.KeyDatabase]),
	}
	setDefault(&read.database, resources.DefaultDatabase)
	r.stateOf(m).credentials = read
	return nil
}

// owned reports whether the cache shows volume or credentials that would go with a registry though they are to stay.
func (r *registryReconciler) hasOwnedRetainedData(ctx context.Context, m *v1beta1.ModelRegistry) bool {
	for name, kind := range map[string]schema.GroupVersionKind{resources.CredentialsName(m): registry.Secret, resources.ClaimName(m): registry.Claim} {
		object, err := capability.GetMetadata(ctx, r.cached, kind, client.ObjectKey{Namespace: m.Namespace, Name: name})
		if err == nil && object != nil && retainsData(m) && slices.ContainsFunc(object.OwnerReferences, isRegistryReference) {
			return true
		}
	}
	return false
}

// releaseData makes volume and credentials outlive a registry that is being deleted, or does not use them, unless it says otherwise. It
// reports whether there are any that stay.
func (r *registryReconciler) updateDataOwners(ctx context.Context, m *v1beta1.ModelRegistry) (stays bool, err error) {
	for name, object := range map[string]client.Object{resources.CredentialsName(m): &corev1.Secret{}, resources.ClaimName(m): &corev1.PersistentVolumeClaim{}} {
		err := r.apiReader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, object)
		if client.IgnoreNotFound(err) != nil {
			return stays, fmt.Errorf("reading %s: %w", name, err)
		}
		if err != nil || !isManaged(object) {
			continue
		}
		stays = stays || retainsData(m)
		if err := r.applier.PatchExisting(ctx, object, func() { updateDataMetadata(object, m) }); err != nil {
			return stays, err
		}
	}
	return stays, nil
}

// isOurs says whether an object bears a sign of this operator or of the one that it replaces. That it was once written here is none: a user
// who takes labels and owner reference off their data wants to keep it.
func isManaged(object client.Object) bool {
	return object.GetLabels()[names.OperatorLabel] == names.OperatorName || object.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy ||
		slices.ContainsFunc(object.GetOwnerReferences(), isRegistryReference)
}

// adjustData brings the marks of volume or credentials up to date: our labels, no copy of the content in an annotation, and
// the owner that the retention policy demands.
func updateDataMetadata(object client.Object, m *v1beta1.ModelRegistry) {
	updateLabels(object, names.Labels(ComponentName))
	object.SetOwnerReferences(dataOwnerReferences(object, m))
}

// adjustMarks adds labels, and removes the copy of the object that the original kept in an annotation.
func updateLabels(object client.Object, marks map[string]string) {
	object.SetLabels(labels.Merge(object.GetLabels(), marks))
	annotations := object.GetAnnotations()
	delete(annotations, LastApplied)
	object.SetAnnotations(annotations)
}

// ownersOfData are the owners that volume or credentials should have: all others that they have, and the registry itself only if
// its data is to go with it.
func dataOwnerReferences(object client.Object, m *v1beta1.ModelRegistry) []metav1.OwnerReference {
	owners := slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return isRegistryReference(ref) && (retainsData(m) || ref.UID != m.UID)
	})
	if !retainsData(m) && len(owners) == 0 {
		owners = append(owners, *metav1.NewControllerRef(m, v1beta1.GroupVersion.WithKind(v1beta1.Kind)))
	}
	return owners
}

// retains says whether the data outlives its registry; only an explicit Delete says otherwise.
func retainsData(m *v1beta1.ModelRegistry) bool {
	return m.Spec.Postgres == nil || m.Spec.Postgres.RetentionPolicy != v1beta1.DeleteData
}

func isRegistryReference(ref metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == v1beta1.GroupVersion.Group && ref.Kind == v1beta1.Kind
}

// connect replaces the wish for a database by the way to the one that was made. Nothing else that the spec says of a
// connection applies to it.
func setConnection(m *v1beta1.ModelRegistry, to credentials) {
	wish := m.Spec.Postgres
	m.Spec.Postgres = &v1beta1.PostgresConfig{
		Host:            resources.DatabaseName(m),
		Port:            new(v1beta1.DefaultPostgresPort),
		Username:        to.user,
		Database:        to.database,
		PasswordSecret:  &v1beta1.SecretKeyValue{Name: resources.CredentialsName(m), Key: resources.KeyPassword},
		Image:           wish.Image,
		RetentionPolicy: wish.RetentionPolicy,
		Storage:         wish.Storage,
		Resources:       wish.Resources,
		ServerTLS:       wish.ServerTLS,
		MajorVersion:    wish.MajorVersion,
		Backup:          wish.Backup,
	}
	if resources.EncryptsDatabase(m) {
		m.Spec.Postgres.SSLMode = common.VerifyFull
		m.Spec.Postgres.SSLRootCertificateSecret = &v1beta1.SecretKeyValue{Name: resources.DatabaseTLSName(m), Key: common.CAKey}
	}
}
