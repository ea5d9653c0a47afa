package modelregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/database"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// rejectedSize is an expansion of a claim that the API server rejected. It is retried when the claim or the size changes, and at retryAt,
// because a quota or a storage class may have changed.
type rejectedSize struct {
	resourceVersion, size, message string
	retryAt                        time.Time
}

const (
	// expansionRetry is the time between two attempts at a rejected expansion.
	expansionRetry = 10 * time.Minute
	// failureDelay is the time for which a CronJob must report a failed backup. The CronJob controller records the end of a successful Job
	// in two writes, between which the status is that of a failure.
	failureDelay = 10 * time.Second
)

// Annotations of a claim with the user and the database with which its data was created. The spec may name others, and the Secret may be
// deleted.
const (
	annotationUser     = "modelregistry.opendatahub.io/database-user"
	annotationDatabase = "modelregistry.opendatahub.io/database"
)

// getClaim returns a claim, or nil if it does not exist.
func (r *registryReconciler) getClaim(ctx context.Context, m *v1beta1.ModelRegistry, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	found, err := r.Find(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, claim)
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolumeClaim %s: %w", name, err)
	}
	if !found {
		return nil, nil
	}
	return claim, nil
}

// ensureClaim creates the claim, or updates its metadata and expands it. It returns a message if the claim differs from
// spec.postgres.storage.
func (r *registryReconciler) ensureClaim(ctx context.Context, m *v1beta1.ModelRegistry) (string, error) {
	s := r.stateOf(m)
	s.dataImage, s.databaseImage = database.Image{}, ""
	annotations := map[string]string{annotationUser: s.credentials.user, annotationDatabase: s.credentials.database}
	claim, err := r.getClaim(ctx, m, resources.ClaimName(m))
	if err != nil {
		return "", err
	}
	r.reportEarlierData(m, claim)
	if claim == nil {
		created := resources.DatabaseClaim(m)
		if config, ok := created.Config.(*corev1ac.PersistentVolumeClaimApplyConfiguration); ok {
			config.WithAnnotations(annotations).WithAnnotations(database.EmptyAnnotations())
		}
		return "", r.Applier.Create(ctx, m, created)
	}
	server, err := r.Deployment(ctx, m.Namespace, resources.DatabaseName(m))
	if err != nil {
		return "", err
	}
	s.databaseImage = controlledImage(m, server)
	desired, _ := s.desiredDatabaseImage(m)
	s.dataImage = database.ImageOfData(claim, server, desired)
	if isManaged(claim) {
		maps.Copy(annotations, s.dataImage.Annotations())
		if err := r.Applier.PatchExisting(ctx, claim, func() {
			updateDataMetadata(claim, m)
			for key, value := range annotations {
				metav1.SetMetaDataAnnotation(&claim.ObjectMeta, key, value)
			}
		}); err != nil {
			return "", err
		}
	}
	return r.expandClaim(ctx, m, claim, m.Spec.Postgres.Storage, "spec.postgres.storage")
}

// controlledImage returns the image of the Deployment of the database, or "" if the registry controls no such Deployment.
func controlledImage(m *v1beta1.ModelRegistry, server *appsv1.Deployment) string {
	containers := server.Spec.Template.Spec.Containers
	if len(containers) == 0 || !metav1.IsControlledBy(server, m) {
		return ""
	}
	return containers[0].Image
}

// expandClaim expands a managed claim to the requested size. It returns a message if the claim differs from the field.
func (r *registryReconciler) expandClaim(ctx context.Context, m *v1beta1.ModelRegistry, claim *corev1.PersistentVolumeClaim,
	storage *v1beta1.PostgresStorage, field string,
) (string, error) {
	requested := ptr.Deref(storage, v1beta1.PostgresStorage{})
	if isManaged(claim) {
		if err := r.Applier.PatchExisting(ctx, claim, func() { servers.SetStorageClassIfUnbound(claim, requested.StorageClassName) }); err != nil {
			return "", err
		}
	}
	spec := servers.ClaimSpec{Size: requested.Size, Class: requested.StorageClassName, SizeField: field + ".size", ClassField: field + ".storageClassName"}
	if difference := spec.Difference(claim); difference != "" || requested.Size == nil {
		return difference, nil
	}
	return r.resizeClaim(ctx, m, claim, *requested.Size, field)
}

// resizeClaim raises the storage request of a managed claim, unless the API server rejected the size for this version of the claim and
// retryAt is not reached. It returns a message if the claim keeps its size.
func (r *registryReconciler) resizeClaim(ctx context.Context, m *v1beta1.ModelRegistry, claim *corev1.PersistentVolumeClaim,
	requested resource.Quantity, field string,
) (string, error) {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if requested.Cmp(size) == 0 {
		return "", nil
	}
	if !isManaged(claim) {
		return fmt.Sprintf("PersistentVolumeClaim %s was not created by this operator and stays at %s: request %s in the claim yourself", claim.Name, &size, &requested), nil
	}
	s := r.stateOf(m)
	rejected, now := s.rejectedSizes, r.Clock.Now()
	if last := rejected[field]; last.resourceVersion == claim.ResourceVersion && last.size == requested.String() && now.Before(last.retryAt) {
		s.recheckAt(last.retryAt)
		return last.message, nil
	}
	rejection := rejectedSize{resourceVersion: claim.ResourceVersion, size: requested.String(), retryAt: now.Add(expansionRetry)}
	err := r.Applier.PatchExisting(ctx, claim, func() {
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: requested}
	})
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		delete(rejected, field)
		return "", err
	}
	rejection.message = fmt.Sprintf("PersistentVolumeClaim %s cannot be expanded to %s: %v", claim.Name, &requested, err)
	rejected[field] = rejection
	s.recheckAt(rejection.retryAt)
	return rejection.message, nil
}

// reportStorage sets condition StorageInSync to False if claims differ from the spec, and removes it otherwise.
func reportStorage(m *v1beta1.ModelRegistry, differences ...string) {
	differences = slices.DeleteFunc(differences, func(text string) bool { return text == "" })
	if len(differences) == 0 {
		conditions.Remove(&m.Status.Conditions, ConditionStorage)
		return
	}
	setCondition(m, ConditionStorage, metav1.ConditionFalse, ReasonClaimDiffers, strings.Join(differences, "; "))
}

// desiredDatabaseImage returns the image of the spec or the settings, and the name of the field for messages.
func (s *state) desiredDatabaseImage(m *v1beta1.ModelRegistry) (image database.Image, field string) {
	field = "spec.postgres.image"
	if m.Spec.Postgres.Image == "" {
		field = "the image of databases in the settings of the operator (RELATED_IMAGE_POSTGRESQL_16_IMAGE)"
	}
	return database.NewImage(cmp.Or(m.Spec.Postgres.Image, s.platform.Images.Postgres), m.Spec.Postgres.MajorVersion), field
}

// pinDatabaseImage keeps the image of a generated database while the major version of the desired image is unknown or differs. It
// rejects the spec if that image may not run.
func (r *registryReconciler) pinDatabaseImage(m, effective *v1beta1.ModelRegistry) error {
	reason, message, pinned, s := "", "", "", r.stateOf(m)
	if generatesDatabase(m) {
		desired, field := s.desiredDatabaseImage(m)
		pinned = database.TrustedImage(s.dataImage.Name, s.databaseImage, desired.Name, s.platform.Images.Postgres)
		reason, message = database.CheckImage(desired, s.dataImage, resources.ClaimName(m), field, pinned)
	}
	if reason == "" {
		conditions.Remove(&m.Status.Conditions, ConditionDatabaseImage)
		return nil
	}
	setCondition(m, ConditionDatabaseImage, metav1.ConditionFalse, reason, message)
	if pinned == "" {
		return rejectSpec(m, errors.New(message))
	}
	effective.Spec.Postgres.Image = pinned
	return nil
}

// hasBackups reports whether a generated database has backups.
func hasBackups(m *v1beta1.ModelRegistry) bool {
	return generatesDatabase(m) && m.Spec.Postgres.Backup != nil
}

// ensureBackupClaim creates or expands the claim of the backups. It returns a message if the claim differs from
// spec.postgres.backup.storage. It does not use a foreign claim.
func (r *registryReconciler) ensureBackupClaim(ctx context.Context, m *v1beta1.ModelRegistry) (string, error) {
	if !hasBackups(m) {
		return "", nil
	}
	claim, err := r.getClaim(ctx, m, resources.BackupClaimName(m))
	switch {
	case err != nil:
		return "", err
	case claim == nil:
		return "", r.Applier.Create(ctx, m, resources.BackupClaim(m))
	case !isManaged(claim):
		r.stateOf(m).backupBlocked = &metav1.Condition{Status: metav1.ConditionFalse, Reason: database.ReasonForeign, Message: fmt.Sprintf(
			"PersistentVolumeClaim %s was not created by this operator, so no backups are stored on it: delete it, recreate it under another name, or let the operator use it with the label %s=%s",
			claim.Name, resources.LabelCreatedBy, resources.CreatedBy)}
		return "", nil
	}
	return r.expandClaim(ctx, m, claim, m.Spec.Postgres.Backup.Storage, "spec.postgres.backup.storage")
}

// applyBackup applies the CronJob and the NetworkPolicy of backups. A rejection is reported in a condition and does not stop the reconcile.
func (r *registryReconciler) applyBackup(ctx context.Context, m, effective *v1beta1.ModelRegistry, in resources.Inputs) error {
	if r.stateOf(m).backupBlocked != nil || !hasBackups(m) {
		return nil
	}
	err := r.Applier.Apply(ctx, m, resources.BuildBackup(effective, in))
	if !apply.AllErrorsMatch(err, func(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) }) && !apply.IsBlocked(err) {
		return err
	}
	r.stateOf(m).backupBlocked = &metav1.Condition{Status: metav1.ConditionFalse, Reason: database.ReasonRefused, Message: fmt.Sprintf(
		"No backups are made, because their CronJob or NetworkPolicy could not be applied: correct spec.postgres.backup, or fix this error: %v", err)}
	return nil
}

// reportBackup sets condition BackupReady.
func (r *registryReconciler) reportBackup(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if !hasBackups(m) {
		conditions.Remove(&m.Status.Conditions, ConditionBackup)
		return nil
	}
	condition := r.stateOf(m).backupBlocked
	if condition == nil {
		cronJob := &batchv1.CronJob{}
		err := r.Cached.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.BackupName(m)}, cronJob)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading CronJob %s: %w", resources.BackupName(m), err)
		}
		if err != nil {
			cronJob.Spec.Schedule = m.Spec.Postgres.Backup.Schedule // not in the cache yet
		}
		condition = database.BackupCondition(cronJob)
	}
	if r.awaitsFailure(m, condition) {
		return nil
	}
	setCondition(m, ConditionBackup, condition.Status, condition.Reason, condition.Message)
	return nil
}

// awaitsFailure reports whether a new failure of a backup is not reported yet, and requests a reconcile at the end of failureDelay.
func (r *registryReconciler) awaitsFailure(m *v1beta1.ModelRegistry, condition *metav1.Condition) bool {
	s, now := r.stateOf(m), r.Clock.Now()
	previous, _ := conditions.Get(m.Status.Conditions, ConditionBackup)
	if condition.Reason != database.ReasonFailed || condition.Message == previous.Message {
		s.backupFailed = time.Time{}
		return false
	}
	if s.backupFailed.IsZero() {
		s.backupFailed = now
	}
	reportAt := s.backupFailed.Add(failureDelay)
	if !now.Before(reportAt) {
		return false
	}
	s.recheckAt(reportAt)
	return true
}
