package resources

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	rules "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

// What a generated database is called unless the spec says otherwise, and the keys of its Secret.
const (
	DefaultDatabase     = "model_registry"
	DefaultDatabaseUser = "modelregistry"
	KeyUsername         = "username"
	KeyPassword         = "password"
	// KeyDatabase is there when the database is called otherwise: Secrets of the originals have none.
	KeyDatabase = "database"

	defaultClaimSize = "5Gi"
	databaseVolume   = "postgres-storage"
	checkCommand     = "/usr/libexec/check-container"
)

// BuildDatabase lists the workload of a generated database in the order in which it is to be written. The image, and the name
// of the database, are those of spec.postgres, which describes the connection.
func BuildDatabase(m *v1beta1.ModelRegistry, in Inputs) (apply.Desired, error) {
	if err := CheckIdentifier("spec.postgres.database", m.Spec.Postgres.Database); err != nil {
		return nil, err
	}
	var desired apply.Desired
	desired.Add(databaseIngressPolicy(m), databaseEgressPolicy(m), databaseService(m), databaseDeployment(m, in))
	return desired, nil
}

// SecretFor holds the credentials of a generated database. It is made once: the database knows no others.
func CredentialsSecret(m *v1beta1.ModelRegistry, user, database, password string) apply.Object {
	data := map[string][]byte{KeyUsername: []byte(user), KeyPassword: []byte(password)}
	if database != DefaultDatabase {
		data[KeyDatabase] = []byte(database)
	}
	config := corev1ac.Secret(CredentialsName(m), m.Namespace).WithType(corev1.SecretTypeOpaque).WithData(data)
	return apply.Object{Config: config, Ownership: dataOwnership(m)}
}

// ClaimFor is the volume claim of a generated database. It is made once, and can only grow later.
func DatabaseClaim(m *v1beta1.ModelRegistry) apply.Object {
	return apply.Object{Config: buildClaim(m, ClaimName(m), m.Spec.Postgres.Storage), Ownership: dataOwnership(m)}
}

// claim asks for a volume of the size and class of the spec.
func buildClaim(m *v1beta1.ModelRegistry, name string, storage *v1beta1.PostgresStorage) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	size := resource.MustParse(defaultClaimSize)
	spec := corev1ac.PersistentVolumeClaimSpec().WithAccessModes(corev1.ReadWriteOnce)
	if storage != nil {
		if storage.Size != nil {
			size = *storage.Size
		}
		spec.StorageClassName = storage.StorageClassName
	}
	spec.WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: size}))
	return corev1ac.PersistentVolumeClaim(name, m.Namespace).WithLabels(databaseLabels(m)).WithSpec(spec)
}

// dataOwnership keeps the data of a generated database unless the spec wants it to go with the registry.
func dataOwnership(m *v1beta1.ModelRegistry) apply.Ownership {
	if m.Spec.Postgres.RetentionPolicy == v1beta1.DeleteData {
		return apply.Controlled
	}
	return apply.Unowned
}

func databaseService(m *v1beta1.ModelRegistry) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(DatabaseName(m), m.Namespace).
		WithLabels(databaseLabels(m)).
		WithSpec(corev1ac.ServiceSpec().
			WithSelector(map[string]string{LabelApp: LabelValue(m.Name), labelName: DatabaseName(m)}).
			WithPorts(corev1ac.ServicePort().
				WithPort(v1beta1.DefaultPostgresPort).
				WithTargetPort(intstr.FromInt32(v1beta1.DefaultPostgresPort)).
				WithProtocol(corev1.ProtocolTCP)))
}

// databaseDeployment is the server of a generated database, the only one on its volume.
func databaseDeployment(m *v1beta1.ModelRegistry, in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	volume := corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(ClaimName(m))
	server := resources.Postgres{
		Container: DatabaseContainer, Image: m.Spec.Postgres.Image, Port: v1beta1.DefaultPostgresPort,
		Env: []*corev1ac.EnvVarApplyConfiguration{
			corev1ac.EnvVar().WithName("POSTGRESQL_DATABASE").WithValue(escapeExpansion(sqlDatabaseName(m))),
			resources.FromSecret("POSTGRESQL_USER", CredentialsName(m), KeyUsername),
			resources.FromSecret("POSTGRESQL_PASSWORD", CredentialsName(m), KeyPassword),
		},
		Readiness: databaseProbe(5, checkCommand),
		Liveness:  databaseProbe(30, checkCommand, "--live"),
		Security:  podSecurity(in, true),
		Volume:    corev1ac.Volume().WithName(databaseVolume).WithPersistentVolumeClaim(volume),
		Exclusive: true,
		Selector:  DatabaseSelector(m),
	}
	if given := m.Spec.Postgres.Resources; given != nil {
		server.Resources = resources.Requirements(given.Requests, given.Limits)
	}
	if EncryptsDatabase(m) {
		server.Certificate = DatabaseTLSName(m)
	}
	d := server.Deployment(databaseMeta(m, DatabaseName(m)))
	resources.Place(d.Spec.Template.Spec, &m.Spec.Pods)
	in.DatabaseHash.Apply(d)
	return d
}

// databaseOf is the name of a generated database.
func sqlDatabaseName(m *v1beta1.ModelRegistry) string {
	return cmp.Or(m.Spec.Postgres.Database, DefaultDatabase)
}

// EncryptsDatabase reports whether a generated database serves TLS.
func EncryptsDatabase(m *v1beta1.ModelRegistry) bool {
	return m.Spec.Postgres != nil && m.Spec.Postgres.ServerTLS == v1beta1.Enabled
}

// databaseProbe runs the check that the image brings. Times are in seconds.
func databaseProbe(delay int32, command ...string) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithExec(corev1ac.ExecAction().WithCommand(command...)).
		WithInitialDelaySeconds(delay).
		WithPeriodSeconds(10).
		WithTimeoutSeconds(5).
		WithFailureThreshold(3)
}

// CheckIdentifier refuses a name with which a generated database would not start. Empty is the default.
func CheckIdentifier(field, name string) error {
	if name == "" || rules.IsIdentifier(name) {
		return nil
	}
	return fmt.Errorf("%s %q %s", field, name, rules.IdentifierDetail)
}

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
	return map[string]string{LabelApp: LabelValue(m.Name), LabelComponent: "model-registry-backup", labelName: BackupName(m)}
}

// BackupClaimFor is the volume claim of the backups. It is made once and has no owner: backups outlive the registry.
func BackupClaim(m *v1beta1.ModelRegistry) apply.Object {
	return apply.Object{Config: buildClaim(m, BackupClaimName(m), m.Spec.Postgres.Backup.Storage), Ownership: apply.Unowned}
}

// BuildBackup lists what makes backups of a generated database, in the order in which it is to be written.
func BuildBackup(m *v1beta1.ModelRegistry, in Inputs) apply.Desired {
	wish := m.Spec.Postgres.Backup
	b := resources.PostgresBackup{
		Image: m.Spec.Postgres.Image,
		Env: []*corev1ac.EnvVarApplyConfiguration{
			corev1ac.EnvVar().WithName("PGHOST").WithValue(DatabaseName(m)),
			corev1ac.EnvVar().WithName("PGDATABASE").WithValue(escapeExpansion(sqlDatabaseName(m))),
			resources.FromSecret("PGUSER", CredentialsName(m), KeyUsername),
			resources.FromSecret("PGPASSWORD", CredentialsName(m), KeyPassword),
		},
		Schedule: wish.Schedule, Keep: orDefault(wish.Keep, v1beta1.DefaultBackups), Suspend: wish.Suspend != nil && *wish.Suspend,
		Claim: BackupClaimName(m), Security: podSecurity(in, true), Labels: backupSelector(m),
	}
	if EncryptsDatabase(m) {
		b.Certificate = DatabaseTLSName(m)
	}
	meta := databaseMeta(m, BackupName(m))
	var desired apply.Desired
	desired.Add(b.Policy(meta, DatabaseSelector(m), v1beta1.DefaultPostgresPort), b.CronJob(meta))
	return desired
}
