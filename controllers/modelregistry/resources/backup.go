package resources

import (
	"k8s.io/apimachinery/pkg/util/validation"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// The names of Jobs are those of their CronJob and eleven characters.
const cronJobNameLimit = validation.DNS1035LabelMaxLength - 11

// BackupName is the name of CronJob and NetworkPolicy of the backups.
func BackupName(m *v1beta1.ModelRegistry) string {
	return names.Truncate(m.Name+"-postgres-backup", cronJobNameLimit)
}

// BackupClaimName is the volume claim of the backups.
func BackupClaimName(m *v1beta1.ModelRegistry) string { return m.Name + "-postgres-backup" }

// backupSelector finds the pods of the backups; those of database and server do not match.
func backupSelector(m *v1beta1.ModelRegistry) map[string]string {
	return map[string]string{LabelApp: LabelOf(m.Name), LabelComponent: "model-registry-backup", labelName: BackupName(m)}
}

// BackupClaimFor is the volume claim of the backups. It is made once and has no owner: backups outlive the registry.
func BackupClaimFor(m *v1beta1.ModelRegistry) apply.Object {
	return apply.Object{Config: claim(m, BackupClaimName(m), m.Spec.Postgres.Backup.Storage), Ownership: apply.Unowned}
}

// BuildBackup lists what makes backups of a generated database, in the order in which it is to be written.
func BuildBackup(m *v1beta1.ModelRegistry, in Inputs) apply.Desired {
	wish := m.Spec.Postgres.Backup
	b := resources.PostgresBackup{
		Image: m.Spec.Postgres.Image,
		Env: []*corev1ac.EnvVarApplyConfiguration{
			corev1ac.EnvVar().WithName("PGHOST").WithValue(DatabaseName(m)),
			corev1ac.EnvVar().WithName("PGDATABASE").WithValue(literal(databaseOf(m))),
			resources.FromSecret("PGUSER", CredentialsName(m), KeyUsername),
			resources.FromSecret("PGPASSWORD", CredentialsName(m), KeyPassword),
		},
		Schedule: wish.Schedule, Keep: orDefault(wish.Keep, v1beta1.DefaultBackups), Suspend: wish.Suspend != nil && *wish.Suspend,
		Claim: BackupClaimName(m), Security: podSecurity(in, true), Labels: backupSelector(m),
	}
	if EncryptsDatabase(m) {
		b.Certificate = DatabaseTLSName(m)
	}
	meta := metaOf(m, BackupName(m))
	meta.Labels = databaseLabels(m)
	var desired apply.Desired
	desired.Add(b.Policy(meta, DatabaseSelector(m), v1beta1.DefaultPostgresPort), b.CronJob(meta))
	return desired
}
