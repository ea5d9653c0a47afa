package modelregistry

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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Volume and credentials of a generated database hold data of users, so they are treated unlike every other child: they are
// created once, never respecified, and by default without an owner. An owner reference that were removed only on deletion
// would come too late for a foreground deletion, where the garbage collector removes dependents before it waits for finalizers.

// credentials are what stands in clear in the pods of server and database, with the version of the Secret that they were read from;
// the password is never kept.
type credentials struct {
	uid            types.UID
	version        string
	user, database string
}

// keepData sees to credentials and volume of a generated database, credentials first: those of the original lie open in an
// annotation.
func (r *registries) keepData(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if !generates(m) {
		reportClaim(m, "")
		return r.keepFormerData(ctx, m)
	}
	if err := r.keepCredentials(ctx, m); err != nil {
		return err
	}
	return r.keepClaims(ctx, m)
}

// keepFormerData puts the marks of data right that a registry does not use any more: it must not go with its registry by an owner
// reference of before. Where the cache shows none with the right marks, the API server is queried once for each registry, since
// what the original made does not bear our label.
func (r *registries) keepFormerData(ctx context.Context, m *v1beta1.ModelRegistry) error {
	for name, kind := range map[string]schema.GroupVersionKind{resources.CredentialsName(m): secretKind, resources.ClaimName(m): claimKind} {
		known, err := r.dataInCache(ctx, kind, client.ObjectKey{Namespace: m.Namespace, Name: name})
		if err != nil {
			return err
		}
		if known != nil && !settledData(known, m) {
			_, err := r.releaseData(ctx, m)
			return err
		}
	}
	if _, looked := r.stored.Get(m.UID); looked {
		return nil
	}
	if _, err := r.releaseData(ctx, m); err != nil {
		return err
	}
	r.stored.Set(m.UID, credentials{})
	return nil
}

// dataInCache returns volume or credentials as the cache has them, nil where it has none.
func (r *registries) dataInCache(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (client.Object, error) {
	var object client.Object = &corev1.PersistentVolumeClaim{} // which are held whole
	if kind != claimKind {
		object = metadataOf(kind)
	}
	err := r.cached.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	return object, nil
}

// keepCredentials makes the Secret, or reads the one that is there when it has changed and puts its marks right.
func (r *registries) keepCredentials(ctx context.Context, m *v1beta1.ModelRegistry) error {
	key := client.ObjectKey{Namespace: m.Namespace, Name: resources.CredentialsName(m)}
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(secretKind)
	err := r.cached.Get(ctx, key, head)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading metadata of Secret %s: %w", key, err)
	}
	known, ok := r.stored.Get(m.UID)
	if err == nil && ok && known.uid == head.UID && known.version == head.ResourceVersion && settledData(head, m) {
		return nil
	}
	secret := &corev1.Secret{}
	err = r.live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		if err := r.createCredentials(ctx, m); err != nil {
			return err
		}
		err = r.live.Get(ctx, key, secret)
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return r.takeCredentials(ctx, m, secret)
}

func (r *registries) createCredentials(ctx context.Context, m *v1beta1.ModelRegistry) error {
	user, database := m.Spec.Postgres.Username, m.Spec.Postgres.Database
	if err := errors.Join(resources.CheckIdentifier("spec.postgres.username", user), resources.CheckIdentifier("spec.postgres.database", database)); err != nil {
		return refuse(m, err)
	}
	defaultTo(&user, resources.DefaultDatabaseUser)
	defaultTo(&database, resources.DefaultDatabase)
	claim := &corev1.PersistentVolumeClaim{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.ClaimName(m)}, claim)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading PersistentVolumeClaim %s: %w", resources.ClaimName(m), err)
	}
	if made := claim.Annotations; made[annotationUser] != "" { // a lost Secret: the database knows who it was made for, and takes a new password only
		user, database = made[annotationUser], made[annotationDatabase]
	}
	return r.applier.Create(ctx, m, resources.SecretFor(m, user, database, common.NewPassword()))
}

// takeCredentials puts the marks of a Secret of ours right and remembers what it says. A foreign one is used as it is.
func (r *registries) takeCredentials(ctx context.Context, m *v1beta1.ModelRegistry, secret *corev1.Secret) error {
	for _, key := range []string{resources.KeyUsername, resources.KeyPassword} {
		if len(secret.Data[key]) == 0 {
			return fmt.Errorf("the generated database has a Secret %s without the key %s: add it, or delete the Secret to have a new one made", secret.Name, key)
		}
	}
	if isOurData(secret) {
		if err := r.applier.Adjust(ctx, secret, func() { adjustData(secret, m) }); err != nil {
			return err
		}
	}
	read := credentials{uid: secret.UID, version: secret.ResourceVersion, user: string(secret.Data[resources.KeyUsername]), database: resources.DefaultDatabase}
	if named := secret.Data[resources.KeyDatabase]; len(named) > 0 {
		read.database = string(named)
	}
	r.stored.Set(m.UID, read)
	return nil
}

// credentials returns what keepCredentials has read.
func (r *registries) credentials(m *v1beta1.ModelRegistry) (credentials, error) {
	known, ok := r.stored.Get(m.UID)
	if !ok {
		return credentials{}, fmt.Errorf("the Secret %s of the generated database has not been read", resources.CredentialsName(m))
	}
	return known, nil
}

// releaseData makes volume and credentials outlive a registry that is being deleted, unless it says otherwise. It reports
// whether there are any that stay.
func (r *registries) releaseData(ctx context.Context, m *v1beta1.ModelRegistry) (stays bool, err error) {
	for name, object := range map[string]client.Object{resources.CredentialsName(m): &corev1.Secret{}, resources.ClaimName(m): &corev1.PersistentVolumeClaim{}} {
		err := r.live.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return stays, fmt.Errorf("reading %s: %w", name, err)
		}
		if !isOurData(object) {
			continue
		}
		stays = stays || retains(m)
		if err := r.applier.Adjust(ctx, object, func() { adjustData(object, m) }); err != nil {
			return stays, err
		}
	}
	return stays, nil
}

// isOurData says whether volume or credentials were made by this operator or by the one that it replaces.
func isOurData(object client.Object) bool {
	return object.GetLabels()[names.OperatorLabel] == names.OperatorName || object.GetLabels()[resources.LabelCreatedBy] == resources.CreatedBy ||
		slices.ContainsFunc(object.GetOwnerReferences(), isRegistry)
}

// settledData says whether the marks of volume or credentials are right. Of what is not ours there are none to see.
func settledData(object client.Object, m *v1beta1.ModelRegistry) bool {
	if !isOurData(object) {
		return true
	}
	if _, copied := object.GetAnnotations()[LastApplied]; copied {
		return false
	}
	for key, value := range names.Labels(ComponentName) {
		if object.GetLabels()[key] != value {
			return false
		}
	}
	return slices.EqualFunc(object.GetOwnerReferences(), ownersOfData(object, m), func(a, b metav1.OwnerReference) bool { return a.UID == b.UID })
}

// adjustData brings the marks of volume or credentials up to date: our labels, no copy of the content in an annotation, and
// the owner that the retention policy demands.
func adjustData(object client.Object, m *v1beta1.ModelRegistry) {
	marks := maps.Clone(object.GetLabels())
	if marks == nil {
		marks = map[string]string{}
	}
	maps.Copy(marks, names.Labels(ComponentName))
	object.SetLabels(marks)
	if _, copied := object.GetAnnotations()[LastApplied]; copied {
		kept := maps.Clone(object.GetAnnotations())
		delete(kept, LastApplied)
		object.SetAnnotations(kept)
	}
	object.SetOwnerReferences(ownersOfData(object, m))
}

// ownersOfData are the owners that volume or credentials should have: all others that they have, and the registry itself only if
// its data is to go with it.
func ownersOfData(object client.Object, m *v1beta1.ModelRegistry) []metav1.OwnerReference {
	owners := slices.DeleteFunc(slices.Clone(object.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return isRegistry(ref) && (retains(m) || ref.UID != m.UID)
	})
	if !retains(m) && len(owners) == 0 {
		owners = append(owners, *metav1.NewControllerRef(m, v1beta1.GroupVersion.WithKind(v1beta1.Kind)))
	}
	return owners
}

// retains says whether the data outlives its registry; only an explicit Delete says otherwise.
func retains(m *v1beta1.ModelRegistry) bool {
	return m.Spec.Postgres == nil || m.Spec.Postgres.RetentionPolicy != v1beta1.DeleteData
}

func isRegistry(ref metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == v1beta1.GroupVersion.Group && ref.Kind == v1beta1.Kind
}

// connect replaces the wish for a database by the way to the one that was made. Nothing else that the spec says of a
// connection applies to it.
func connect(m *v1beta1.ModelRegistry, to credentials) {
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
