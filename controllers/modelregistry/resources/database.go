package resources

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	rules "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

// Default names of a generated database, and the keys of its Secret.
const (
	DefaultDatabase     = "model_registry"
	DefaultDatabaseUser = "modelregistry"
	KeyUsername         = "username"
	KeyPassword         = "password"
	// KeyDatabase is set only for names other than DefaultDatabase, because Secrets of the legacy operator have no such key.
	KeyDatabase = "database"

	defaultClaimSize = "5Gi"
	databaseVolume   = "postgres-storage"
	checkCommand     = "/usr/libexec/check-container"
)

// BuildDatabase returns the objects of a generated database, except its Secrets, claims and backups.
// spec.postgres must be the connection, with the image and the database name.
func BuildDatabase(m *v1beta1.ModelRegistry, in Inputs) (apply.Desired, error) {
	if err := CheckIdentifier("spec.postgres.database", m.Spec.Postgres.Database); err != nil {
		return nil, err
	}
	var desired apply.Desired
	desired.Add(databaseIngressPolicy(m), resources.EgressPolicy(databaseMeta(m, DatabaseEgressName(m)), DatabaseSelector(m)), databaseService(m), databaseDeployment(m, in))
	return desired, nil
}

// CredentialsSecret returns the Secret with the credentials of a generated database. It is created once, because the database keeps its
// first credentials.
func CredentialsSecret(m *v1beta1.ModelRegistry, user, database, password string) apply.Object {
	data := map[string][]byte{KeyUsername: []byte(user), KeyPassword: []byte(password)}
	if database != DefaultDatabase {
		data[KeyDatabase] = []byte(database)
	}
	config := corev1ac.Secret(CredentialsName(m), m.Namespace).WithType(corev1.SecretTypeOpaque).WithData(data)
	return apply.Object{Config: config, Ownership: dataOwnership(m)}
}

// DatabaseClaim returns the claim of a generated database. It is created once. Later it is only expanded, or given a storage class while it
// is unbound.
func DatabaseClaim(m *v1beta1.ModelRegistry) apply.Object {
	return apply.Object{Config: buildClaim(m, ClaimName(m), m.Spec.Postgres.Storage), Ownership: dataOwnership(m)}
}

// buildClaim returns a claim with the size and class of the spec.
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

// dataOwnership returns Unowned, so that data outlives the registry, unless the retention policy is Delete.
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
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(map[string]string{LabelApp: LabelValue(m.Name), labelName: DatabaseName(m)}).
			WithPorts(corev1ac.ServicePort().
				WithPort(v1beta1.DefaultPostgresPort).
				WithTargetPort(intstr.FromInt32(v1beta1.DefaultPostgresPort)).
				WithProtocol(corev1.ProtocolTCP)))
}

// databaseIngressPolicy allows ingress only from the server and the backups.
func databaseIngressPolicy(m *v1beta1.ModelRegistry) runtime.ApplyConfiguration {
	clients := resources.AllowTCP(v1beta1.DefaultPostgresPort).WithFrom(resources.PodPeer(ServerSelector(m)))
	if m.Spec.Postgres.Backup != nil {
		clients.WithFrom(resources.PodPeer(backupSelector(m)))
	}
	return resources.IngressPolicy(databaseMeta(m, DatabaseName(m)), DatabaseSelector(m), clients)
}

// databaseDeployment returns the Deployment of a generated database. Only one pod may use its volume.
func databaseDeployment(m *v1beta1.ModelRegistry, in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	volume := corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(ClaimName(m))
	database := resources.Postgres{
		Container: DatabaseContainer, Image: m.Spec.Postgres.Image, Port: v1beta1.DefaultPostgresPort,
		Env: []*corev1ac.EnvVarApplyConfiguration{
			corev1ac.EnvVar().WithName("POSTGRESQL_DATABASE").WithValue(escapeExpansion(sqlDatabaseName(m))),
			resources.SecretEnvVar("POSTGRESQL_USER", CredentialsName(m), KeyUsername),
			resources.SecretEnvVar("POSTGRESQL_PASSWORD", CredentialsName(m), KeyPassword),
		},
		Readiness: databaseProbe(5, checkCommand),
		Liveness:  databaseProbe(30, checkCommand, "--live"),
		Security:  podSecurity(in, true),
		Volume:    corev1ac.Volume().WithName(databaseVolume).WithPersistentVolumeClaim(volume),
		Exclusive: true,
		Selector:  DatabaseSelector(m),
	}
	if requested := m.Spec.Postgres.Resources; requested != nil {
		database.Resources = resources.Requirements(requested.Requests, requested.Limits)
	}
	if EncryptsDatabase(m) {
		database.Certificate = DatabaseTLSName(m)
	}
	d := database.Deployment(databaseMeta(m, DatabaseName(m)))
	resources.SetScheduling(d.Spec.Template.Spec, &m.Spec.Pods)
	in.DatabaseHash.Apply(d)
	return d
}

// sqlDatabaseName returns the name of the database in the PostgreSQL server.
func sqlDatabaseName(m *v1beta1.ModelRegistry) string {
	return cmp.Or(m.Spec.Postgres.Database, DefaultDatabase)
}

// EncryptsDatabase reports whether spec.postgres enables TLS of a generated database.
func EncryptsDatabase(m *v1beta1.ModelRegistry) bool {
	return m.Spec.Postgres != nil && m.Spec.Postgres.ServerTLS == server.Enabled
}

// databaseProbe returns a probe that runs the check of the image. Times are in seconds.
func databaseProbe(delay int32, command ...string) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithExec(corev1ac.ExecAction().WithCommand(command...)).
		WithInitialDelaySeconds(delay).
		WithPeriodSeconds(10).
		WithTimeoutSeconds(5).
		WithFailureThreshold(3)
}

// CheckIdentifier returns an error for a name with which a generated database would not start. An empty name selects the default.
func CheckIdentifier(field, name string) error {
	if name == "" || rules.IsIdentifier(name) {
		return nil
	}
	return fmt.Errorf("%s %q %s", field, name, rules.IdentifierDetail)
}

// cronJobNameLimit is the maximum length of a CronJob name. The name of a Job has eleven more characters.
const cronJobNameLimit = validation.DNS1035LabelMaxLength - 11

// BackupName returns the name of CronJob and NetworkPolicy of the backups.
func BackupName(m *v1beta1.ModelRegistry) string {
	return names.Truncate(m.Name+"-postgres-backup", cronJobNameLimit)
}

// BackupClaimName returns the name of the claim of the backups.
func BackupClaimName(m *v1beta1.ModelRegistry) string { return m.Name + "-postgres-backup" }

// backupSelector returns the selector of backup pods. It does not match pods of database and server.
func backupSelector(m *v1beta1.ModelRegistry) map[string]string {
	return map[string]string{LabelApp: LabelValue(m.Name), LabelComponent: "model-registry-backup", labelName: BackupName(m)}
}

// BackupClaim returns the claim of the backups. It is created once and has no owner, because backups outlive the registry.
func BackupClaim(m *v1beta1.ModelRegistry) apply.Object {
	return apply.Object{Config: buildClaim(m, BackupClaimName(m), m.Spec.Postgres.Backup.Storage), Ownership: apply.Unowned}
}

// BuildBackup returns the objects of the backups of a generated database, except their claim.
func BuildBackup(m *v1beta1.ModelRegistry, in Inputs) apply.Desired {
	backup := m.Spec.Postgres.Backup
	job := resources.PostgresBackup{
		Image: m.Spec.Postgres.Image,
		Env: []*corev1ac.EnvVarApplyConfiguration{
			corev1ac.EnvVar().WithName("PGHOST").WithValue(DatabaseName(m)),
			corev1ac.EnvVar().WithName("PGDATABASE").WithValue(escapeExpansion(sqlDatabaseName(m))),
			resources.SecretEnvVar("PGUSER", CredentialsName(m), KeyUsername),
			resources.SecretEnvVar("PGPASSWORD", CredentialsName(m), KeyPassword),
		},
		Schedule: backup.Schedule, Keep: orDefault(backup.Keep, v1beta1.DefaultBackups), Suspend: backup.Suspend != nil && *backup.Suspend,
		Claim: BackupClaimName(m), Security: podSecurity(in, true), Labels: backupSelector(m), Pods: &m.Spec.Pods,
	}
	if EncryptsDatabase(m) {
		job.Certificate = DatabaseTLSName(m)
	}
	meta := databaseMeta(m, BackupName(m))
	var desired apply.Desired
	desired.Add(job.Policy(meta, DatabaseSelector(m), v1beta1.DefaultPostgresPort), job.CronJob(meta))
	return desired
}
