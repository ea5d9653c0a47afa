package modelregistry

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	"github.com/odh-platform/odh-platform-operator/pkg/registry"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// refusedSize is a size that the API server did not grant to a claim. It is not asked for again until claim or size change.
type rejectedSize struct{ resourceVersion, size, message string }

// What the database in a claim was made with: its Secret may be lost, and the spec say something else since.
const (
	annotationUser     = "modelregistry.opendatahub.io/database-user"
	annotationDatabase = "modelregistry.opendatahub.io/database"
)

// claim finds a claim; nil when there is none.
func (r *registryReconciler) getClaim(ctx context.Context, m *v1beta1.ModelRegistry, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	found, err := registry.Find(ctx, r.cached, r.apiReader, client.ObjectKey{Namespace: m.Namespace, Name: name}, claim)
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolumeClaim %s: %w", name, err)
	}
	if !found {
		return nil, nil
	}
	return claim, nil
}

// keepClaim makes the volume claim, or puts the marks of the one that is there right and lets it grow. It returns what of
// spec.postgres.storage the claim does not follow.
func (r *registryReconciler) ensureClaim(ctx context.Context, m *v1beta1.ModelRegistry) (string, error) {
	s := r.stateOf(m)
	s.dataVersion = database.Image{}
	notes := map[string]string{annotationUser: s.credentials.user, annotationDatabase: s.credentials.database}
	claim, err := r.getClaim(ctx, m, resources.ClaimName(m))
	if err != nil {
		return "", err
	}
	r.reportEarlierData(m, claim)
	if claim == nil {
		fresh := resources.DatabaseClaim(m)
		if config, ok := fresh.Config.(*corev1ac.PersistentVolumeClaimApplyConfiguration); ok {
			config.WithAnnotations(notes).WithAnnotations(database.EmptyAnnotations())
		}
		return "", r.applier.Create(ctx, m, fresh)
	}
	server, err := registry.FindDeployment(ctx, r.cached, r.apiReader, m.Namespace, resources.DatabaseName(m))
	if err != nil {
		return "", err
	}
	wanted, _ := s.desiredDatabase(m)
	s.dataVersion = database.ImageOfData(claim, server, wanted)
	if isManaged(claim) {
		maps.Copy(notes, s.dataVersion.Annotations())
		if err := r.applier.PatchExisting(ctx, claim, func() {
			updateDataMetadata(claim, m)
			for key, value := range notes {
				metav1.SetMetaDataAnnotation(&claim.ObjectMeta, key, value)
			}
		}); err != nil {
			return "", err
		}
	}
	return r.expandClaim(ctx, m, claim, m.Spec.Postgres.Storage, "spec.postgres.storage")
}

// growClaim raises the size of a claim of ours to the one that a field of the spec asks for. It returns what of it the claim does not
// follow, and why.
func (r *registryReconciler) expandClaim(ctx context.Context, m *v1beta1.ModelRegistry, claim *corev1.PersistentVolumeClaim,
	wish *v1beta1.PostgresStorage, field string,
) (string, error) {
	if claim.DeletionTimestamp != nil {
		return apply.Deleting(registry.Claim.Kind, claim).Error() + ", without its data: copy them while there are pods that use it", nil
	}
	if wish == nil {
		return "", nil
	}
	if isManaged(claim) {
		if err := r.applier.PatchExisting(ctx, claim, func() { common.ClassForUnbound(claim, wish.StorageClassName) }); err != nil {
			return "", err
		}
	}
	if common.Unbound(claim) {
		return unboundClaimDifference(claim, wish, field), nil
	}
	if class := claim.Spec.StorageClassName; wish.StorageClassName != nil && class != nil && *class != *wish.StorageClassName {
		return fmt.Sprintf("PersistentVolumeClaim %s has storage class %s, and that cannot become %s: set %s.storageClassName back, or move the data",
			claim.Name, *class, *wish.StorageClassName, field), nil
	}
	if wish.Size == nil {
		return "", nil
	}
	return r.resizeClaim(ctx, m, claim, *wish.Size, field)
}

// unboundDifference says what of a field a claim that waits for its volume does not follow.
func unboundClaimDifference(claim *corev1.PersistentVolumeClaim, wish *v1beta1.PostgresStorage, field string) string {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch class := ptr.Deref(claim.Spec.StorageClassName, ""); {
	case wish.StorageClassName != nil && *wish.StorageClassName != class:
		return fmt.Sprintf("PersistentVolumeClaim %s has storage class %q, and %s.storageClassName is %q; %s", claim.Name, class, field, *wish.StorageClassName,
			common.UnboundFix(claim))
	case wish.Size != nil && wish.Size.Cmp(size) != 0:
		return fmt.Sprintf("PersistentVolumeClaim %s asks for %s, and %s.size is %s; %s", claim.Name, &size, field, wish.Size, common.UnboundFix(claim))
	}
	return ""
}

// growTo raises the request of a claim. A size that was refused is not asked for again while the claim stays as it is.
func (r *registryReconciler) resizeClaim(ctx context.Context, m *v1beta1.ModelRegistry, claim *corev1.PersistentVolumeClaim,
	wish resource.Quantity, field string,
) (string, error) {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch wish.Cmp(size) {
	case 0:
		return "", nil
	case -1:
		return fmt.Sprintf("PersistentVolumeClaim %s asks for %s and cannot shrink to %s: set %s.size back, or move the data",
			claim.Name, &size, &wish, field), nil
	}
	if !isManaged(claim) {
		return fmt.Sprintf("PersistentVolumeClaim %s was not made by this operator and stays at %s: raise it to %s by hand", claim.Name, &size, &wish), nil
	}
	refusals := r.stateOf(m).rejectedSizes
	if before := refusals[field]; before.resourceVersion == claim.ResourceVersion && before.size == wish.String() {
		return before.message, nil
	}
	asked := rejectedSize{resourceVersion: claim.ResourceVersion, size: wish.String()}
	err := r.applier.PatchExisting(ctx, claim, func() {
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: wish}
	})
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		delete(refusals, field)
		return "", err
	}
	asked.message = fmt.Sprintf("PersistentVolumeClaim %s cannot grow to %s: %v", claim.Name, &wish, err)
	refusals[field] = asked
	return asked.message, nil
}

// reportClaims shows what of the spec the live claims do not follow, and hides the condition when they follow.
func reportStorage(m *v1beta1.ModelRegistry, differences ...string) {
	differences = slices.DeleteFunc(differences, func(text string) bool { return text == "" })
	if len(differences) == 0 {
		conditions.Remove(&m.Status.Conditions, ConditionStorage)
		return
	}
	setCondition(m, ConditionStorage, metav1.ConditionFalse, ReasonClaimDiffers, strings.Join(differences, "; "))
}

// wantedDatabase is the image that the spec or the settings ask for, and the field that names it.
func (s *state) desiredDatabase(m *v1beta1.ModelRegistry) (image database.Image, field string) {
	field = "spec.postgres.image"
	if m.Spec.Postgres.Image == "" {
		field = "the image of databases in the settings of the operator (RELATED_IMAGE_POSTGRESQL_16_IMAGE)"
	}
	return database.NewImage(cmp.Or(m.Spec.Postgres.Image, s.platform.Images.Postgres), m.Spec.Postgres.MajorVersion), field
}

// keepVersion leaves a generated database at its image while the wanted one has another major version of PostgreSQL.
func (r *registryReconciler) pinDatabaseImage(m, used *v1beta1.ModelRegistry) {
	reason, message, s := "", "", r.stateOf(m)
	if generatesDatabase(m) {
		wanted, field := s.desiredDatabase(m)
		reason, message = database.CheckImage(wanted, s.dataVersion, resources.ClaimName(m), field)
	}
	if reason == "" {
		conditions.Remove(&m.Status.Conditions, ConditionDatabaseImage)
		return
	}
	used.Spec.Postgres.Image = s.dataVersion.Name
	setCondition(m, ConditionDatabaseImage, metav1.ConditionFalse, reason, message)
}

// backsUp says whether backups of a generated database are to be made.
func hasBackups(m *v1beta1.ModelRegistry) bool {
	return generatesDatabase(m) && m.Spec.Postgres.Backup != nil
}

// keepBackupClaim makes the claim of the backups, or lets it grow. It returns what of spec.postgres.backup.storage the claim does not
// follow. A foreign claim is not used.
func (r *registryReconciler) ensureBackupClaim(ctx context.Context, m *v1beta1.ModelRegistry) (string, error) {
	if !hasBackups(m) {
		return "", nil
	}
	claim, err := r.getClaim(ctx, m, resources.BackupClaimName(m))
	switch {
	case err != nil:
		return "", err
	case claim == nil:
		return "", r.applier.Create(ctx, m, resources.BackupClaim(m))
	case !isManaged(claim):
		r.stateOf(m).backupBlocked = &metav1.Condition{Status: metav1.ConditionFalse, Reason: database.ReasonForeign, Message: fmt.Sprintf(
			"PersistentVolumeClaim %s was not made by this operator, so nothing is written to it: rename or delete it, or let the operator use it with the label %s=%s",
			claim.Name, resources.LabelCreatedBy, resources.CreatedBy)}
		return "", nil
	}
	return r.expandClaim(ctx, m, claim, m.Spec.Postgres.Backup.Storage, "spec.postgres.backup.storage")
}

// writeBackup writes what makes backups. What the API server refuses of it holds up nothing else, and is reported.
func (r *registryReconciler) applyBackup(ctx context.Context, m, used *v1beta1.ModelRegistry, in resources.Inputs) error {
	if r.stateOf(m).backupBlocked != nil || !hasBackups(m) {
		return nil
	}
	err := r.applier.Apply(ctx, m, resources.BuildBackup(used, in))
	if !apply.OnlyErrors(err, func(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) }) && !apply.Blocked(err) {
		return err
	}
	r.stateOf(m).backupBlocked = &metav1.Condition{Status: metav1.ConditionFalse, Reason: database.ReasonRefused, Message: fmt.Sprintf(
		"No backups are made, because the CronJob for them could not be written: correct spec.postgres.backup, or what the message names: %v", err)}
	return nil
}

// reportBackup says how the backups are.
func (r *registryReconciler) reportBackup(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if !hasBackups(m) {
		conditions.Remove(&m.Status.Conditions, ConditionBackup)
		return nil
	}
	c := r.stateOf(m).backupBlocked
	if c == nil {
		job := &batchv1.CronJob{}
		err := r.cached.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.BackupName(m)}, job)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading CronJob %s: %w", resources.BackupName(m), err)
		}
		if err != nil {
			job.Spec.Schedule = m.Spec.Postgres.Backup.Schedule // the cache has not seen it yet
		}
		c = database.BackupCondition(job)
	}
	setCondition(m, ConditionBackup, c.Status, c.Reason, c.Message)
	return nil
}
