package modelregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/database"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// wantedDatabase is the image that the spec or the settings ask for, and the field that names it.
func (r *registries) wantedDatabase(m *v1beta1.ModelRegistry) (image database.Image, field string) {
	field = "spec.postgres.image"
	if m.Spec.Postgres.Image == "" {
		field = "the image of databases in the settings of the operator (RELATED_IMAGE_POSTGRESQL_16_IMAGE)"
	}
	return database.Wanted(cmp.Or(m.Spec.Postgres.Image, r.effective(m).Images.Postgres), m.Spec.Postgres.MajorVersion), field
}

// wroteClaim returns the image whose PostgreSQL wrote the data in the claim of a database.
func (r *registries) wroteClaim(ctx context.Context, m *v1beta1.ModelRegistry, claim *corev1.PersistentVolumeClaim) (database.Image, error) {
	server, err := r.deployment(ctx, m.Namespace, resources.DatabaseName(m))
	if err != nil {
		return database.Image{}, err
	}
	wanted, _ := r.wantedDatabase(m)
	return database.Wrote(claim, server, wanted), nil
}

// keepVersion leaves a generated database at its image while the wanted one has another major version of PostgreSQL.
func (r *registries) keepVersion(m, used *v1beta1.ModelRegistry) {
	reason := ""
	if generates(m) {
		wanted, field := r.wantedDatabase(m)
		wrote, _ := r.wrote.Get(m.UID) // which keepClaim has found
		var message string
		if reason, message = database.Refusal(wanted, wrote, resources.ClaimName(m), field); reason != "" {
			used.Spec.Postgres.Image = wrote.Name
			setCondition(m, ConditionDatabaseImage, metav1.ConditionFalse, reason, message)
		}
	}
	if reason == "" {
		conditions.Remove(&m.Status.Conditions, ConditionDatabaseImage)
	}
}

// backsUp says whether backups of a generated database are to be made.
func backsUp(m *v1beta1.ModelRegistry) bool { return generates(m) && m.Spec.Postgres.Backup != nil }

// keepBackupClaim makes the claim of the backups, or lets it grow. It returns what of spec.postgres.backup.storage the claim does not
// follow. A foreign claim is not used.
func (r *registries) keepBackupClaim(ctx context.Context, m *v1beta1.ModelRegistry) (string, error) {
	r.unsaved.Forget(m.UID)
	if !backsUp(m) {
		return "", nil
	}
	claim, err := r.claim(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.BackupClaimName(m)})
	if apierrors.IsNotFound(err) {
		return "", r.applier.Create(ctx, m, resources.BackupClaimFor(m))
	}
	if err != nil {
		return "", err
	}
	if !isOurData(claim) {
		r.unsaved.Set(m.UID, database.Backups{Status: metav1.ConditionFalse, Reason: database.ReasonForeign, Message: fmt.Sprintf(
			"PersistentVolumeClaim %s was not made by this operator, so nothing is written to it: rename or delete it, or let the operator use it with the label %s=%s",
			claim.Name, resources.LabelCreatedBy, resources.CreatedBy)})
		return "", nil
	}
	return r.growClaim(ctx, m.UID, claim, m.Spec.Postgres.Backup.Storage, "spec.postgres.backup.storage")
}

// writeBackup writes what makes backups. What the API server refuses of it holds up nothing else, and is reported.
func (r *registries) writeBackup(ctx context.Context, m, used *v1beta1.ModelRegistry, in resources.Inputs) error {
	if _, impossible := r.unsaved.Get(m.UID); impossible || !backsUp(m) {
		return nil
	}
	err := r.applier.Apply(ctx, m, resources.BuildBackup(used, in))
	if !apply.Only(err, func(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) }) && !apply.Blocked(err) {
		return err
	}
	r.unsaved.Set(m.UID, database.Backups{Status: metav1.ConditionFalse, Reason: database.ReasonRefused, Message: fmt.Sprintf(
		"No backups are made, because the CronJob for them could not be written: correct spec.postgres.backup, or what the message names: %v", err)})
	return nil
}

// reportBackup says how the backups are.
func (r *registries) reportBackup(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if !backsUp(m) {
		conditions.Remove(&m.Status.Conditions, ConditionBackup)
		return nil
	}
	b, impossible := r.unsaved.Get(m.UID)
	if !impossible {
		job := &batchv1.CronJob{}
		err := r.cached.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.BackupName(m)}, job)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading CronJob %s: %w", resources.BackupName(m), err)
		}
		if err != nil {
			job.Spec.Schedule = m.Spec.Postgres.Backup.Schedule // the cache has not seen it yet
		}
		b = database.BackupsOf(job)
	}
	setCondition(m, ConditionBackup, b.Status, b.Reason, b.Message)
	return nil
}

// databaseAuthority is the common name of the CA of a generated database.
const databaseAuthority = "odh-platform-operator-model-registry-database-ca"

// keepDatabaseCertificate issues the certificate of a generated database that serves TLS. Every client of it is ours, so that no
// platform needs to know the CA.
func (r *registries) keepDatabaseCertificate(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if !generates(m) || !resources.EncryptsDatabase(m) {
		r.databaseCertificates.Leave(m)
		return nil
	}
	return r.databaseCertificates.Keep(ctx, m, servingcert.Wanted{
		Namespace: m.Namespace, Name: resources.DatabaseTLSName(m), Authority: databaseAuthority, Service: resources.DatabaseName(m),
		Labels: resources.Labels(m, resources.DatabaseName(m)),
	})
}

// both joins two texts, either of which may be empty.
func both(a, b string) string {
	return strings.Join(strings.FieldsFunc(a+"\n"+b, func(c rune) bool { return c == '\n' }), "; ")
}

// keepClaims sees to the volumes of a generated database and of its backups, and reports what they cannot become.
func (r *registries) keepClaims(ctx context.Context, m *v1beta1.ModelRegistry) error {
	data, err := r.keepClaim(ctx, m)
	backups, failed := r.keepBackupClaim(ctx, m)
	reportClaim(m, both(data, backups))
	return errors.Join(err, failed)
}
