package resources

import (
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// PostgresGraceSeconds is the termination grace period of PostgreSQL pods: the checkpoint of a fast shutdown may take long on a slow
// volume.
const PostgresGraceSeconds int64 = 120

// postgresCommand starts the server of the sclorg images (https://github.com/sclorg/postgresql-container) once no other server uses the
// volume at $1. A Deployment may replace a terminating pod whose server still runs. PostgreSQL does not detect that server, because both
// have process ID 1. Descriptor 9 holds the lock and is inherited by all server processes, so that the lock ends with the last of them.
//
//go:embed postgres_run.sh
var postgresCommand string

// ExclusivePostgres makes a container of an sclorg image wait until no other server uses the volume at dir. It includes StopPostgresFast.
func ExclusivePostgres(container *corev1ac.ContainerApplyConfiguration, dir string) *corev1ac.ContainerApplyConfiguration {
	return StopPostgresFast(container).WithCommand("/bin/sh", "-c", strings.TrimSpace(postgresCommand), "postgres", dir)
}

// StopPostgresFast adds a preStop hook for a fast shutdown. After SIGTERM alone the server would wait for clients to disconnect, which
// connection pools never do, until it is killed.
func StopPostgresFast(container *corev1ac.ContainerApplyConfiguration) *corev1ac.ContainerApplyConfiguration {
	return container.WithLifecycle(corev1ac.Lifecycle().
		WithPreStop(corev1ac.LifecycleHandler().
			WithExec(corev1ac.ExecAction().WithCommand("/bin/sh", "-c", "kill -INT 1"))))
}

// PostgresDir is the data directory of the sclorg images.
const PostgresDir = "/var/lib/pgsql/data"

// Postgres is a PostgreSQL server of an sclorg image for one client.
type Postgres struct {
	// Container and Image are the name and the image of the container.
	Container, Image string
	Port             int32
	// Env has user, password and database, which the image creates on an empty volume.
	Env []*corev1ac.EnvVarApplyConfiguration
	// Liveness and Readiness are the probes of the container.
	Liveness, Readiness *corev1ac.ProbeApplyConfiguration
	// Resources are the resources of the container; nil for PostgresResources.
	Resources *corev1ac.ResourceRequirementsApplyConfiguration
	Security  *corev1ac.PodSecurityContextApplyConfiguration
	// Volume is the data volume.
	Volume *corev1ac.VolumeApplyConfiguration
	// Exclusive adds the lock of ExclusivePostgres, for a persistent volume.
	Exclusive bool
	// Certificate is the Secret with the serving certificate; empty without TLS.
	Certificate string
	// Selector is the selector of the pods.
	Selector map[string]string
}

// PostgresResources returns the default resources.
func PostgresResources() *corev1ac.ResourceRequirementsApplyConfiguration {
	amounts := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return Requirements(amounts("250m", "256Mi"), amounts("500m", "512Mi"))
}

// Deployment returns the Deployment of the server. Its strategy is Recreate, because only one server may use the volume.
func (p Postgres) Deployment(meta metav1.ObjectMeta) *appsv1ac.DeploymentApplyConfiguration {
	if p.Resources == nil {
		p.Resources = PostgresResources()
	}
	container := corev1ac.Container().
		WithName(p.Container).
		WithImage(p.Image).
		WithPorts(corev1ac.ContainerPort().WithContainerPort(p.Port).WithProtocol(corev1.ProtocolTCP)).
		WithEnv(p.Env...).
		WithLivenessProbe(p.Liveness).
		WithReadinessProbe(p.Readiness).
		WithResources(p.Resources).
		WithSecurityContext(ContainerSecurity()).
		WithVolumeMounts(Mount(*p.Volume.Name, PostgresDir))
	if p.Exclusive {
		ExclusivePostgres(container, PostgresDir)
	} else {
		StopPostgresFast(container)
	}
	volumes := []*corev1ac.VolumeApplyConfiguration{p.Volume}
	if p.Certificate != "" {
		volumes = append(volumes, servePostgresTLS(container, p.Certificate))
	}
	pod := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithTerminationGracePeriodSeconds(PostgresGraceSeconds).
		WithSecurityContext(p.Security).
		WithContainers(container).
		WithVolumes(volumes...)
	return appsv1ac.Deployment(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(1).
		WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(p.Selector)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(p.Selector).WithSpec(pod)))
}

const (
	// CAKey is the Secret key with the CA of a PostgreSQL server.
	CAKey = "ca.crt"

	postgresTLSVolume = "postgres-tls"
	postgresTLSDir    = "/etc/postgres-tls"
	// postgresKeyMode is the least strict mode that PostgreSQL accepts for a key file of root; the pods read the key through their group.
	postgresKeyMode = int32(0o640)
)

// servePostgresTLS enables TLS for a server of the sclorg images with the certificate in a Secret, and returns its volume. The start script
// of these images passes its arguments to the server.
func servePostgresTLS(container *corev1ac.ContainerApplyConfiguration, secret string) *corev1ac.VolumeApplyConfiguration {
	settings := []string{
		"-c", "ssl=on",
		"-c", "ssl_cert_file=" + postgresTLSDir + "/" + corev1.TLSCertKey,
		"-c", "ssl_key_file=" + postgresTLSDir + "/" + corev1.TLSPrivateKeyKey,
	}
	if n := len(container.Command); n > 0 { // see ExclusivePostgres
		container.Command[2] += " " + strings.Join(settings, " ")
	} else {
		container.WithArgs("run-postgresql").WithArgs(settings...)
	}
	container.WithVolumeMounts(ReadOnlyMount(postgresTLSVolume, postgresTLSDir))
	source := corev1ac.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(postgresKeyMode)
	return corev1ac.Volume().WithName(postgresTLSVolume).WithSecret(source)
}

// AddPostgresVerification makes a libpq client verify the server with the CA in a Secret, and returns its volume. sslMode decides whether
// the host name is verified too.
func AddPostgresVerification(container *corev1ac.ContainerApplyConfiguration, sslMode, secret string) *corev1ac.VolumeApplyConfiguration {
	const volume, dir = "postgres-ca", "/etc/postgres-ca"
	container.WithEnv(
		corev1ac.EnvVar().WithName("PGSSLMODE").WithValue(sslMode),
		corev1ac.EnvVar().WithName("PGSSLROOTCERT").WithValue(dir+"/"+CAKey),
	).WithVolumeMounts(ReadOnlyMount(volume, dir))
	return SecretVolume(volume, secret, corev1ac.KeyToPath().WithKey(CAKey).WithPath(CAKey))
}

// VerifyFull is the sslmode in which a client verifies the certificate and name of the server.
const VerifyFull = "verify-full"

// ConnectionURIKey is the key with the URI of a database, including the escaped user and password, in Secrets of CloudNativePG and Crunchy
// Postgres for Kubernetes.
const ConnectionURIKey = "uri"

// ConnectionKeys are the keys of these Secrets with the single parameters of the connection, by libpq variable.
var ConnectionKeys = []struct{ Variable, Key string }{
	{"PGHOST", "host"}, {"PGPORT", "port"}, {"PGDATABASE", "dbname"}, {"PGUSER", "user"}, {"PGPASSWORD", "password"},
}

// PostgresConnectionEnv returns the libpq variables of a database from a Secret with ConnectionKeys.
func PostgresConnectionEnv(secret string) []*corev1ac.EnvVarApplyConfiguration {
	env := make([]*corev1ac.EnvVarApplyConfiguration, 0, len(ConnectionKeys))
	for _, k := range ConnectionKeys {
		env = append(env, SecretEnvVar(k.Variable, secret, k.Key))
	}
	return env
}

var (
	repositoryVersion = regexp.MustCompile(`(?:postgresql|postgres)-?(\d{1,2})(?:-|$)`)
	tagVersion        = regexp.MustCompile(`^v?(\d{1,2})(?:[-._]|$)`)
)

// PostgresMajorVersion returns the major version of PostgreSQL in the repository of an image, such as postgresql-16-c10s, or else in its
// tag, such as postgresql:16.4. It returns 0 if neither contains a version.
func PostgresMajorVersion(image string) int32 {
	image, _, _ = strings.Cut(image, "@")
	name := image[strings.LastIndex(image, "/")+1:]
	name, tag, _ := strings.Cut(name, ":")
	match := repositoryVersion.FindStringSubmatch(name)
	if match == nil && strings.Contains(name, "postgres") {
		match = tagVersion.FindStringSubmatch(tag)
	}
	if match == nil {
		return 0
	}
	version, err := strconv.ParseInt(match[1], 10, 32)
	if err != nil {
		return 0
	}
	return int32(version)
}

// PostgresRepository returns an image without tag, digest and the version of PostgreSQL in its name.
func PostgresRepository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	start := strings.LastIndex(image, "/") + 1
	name, _, _ := strings.Cut(image[start:], ":")
	if match := repositoryVersion.FindStringSubmatchIndex(name); match != nil {
		name = name[:match[2]] + name[match[3]:]
	}
	return image[:start] + name
}

// passwordBytes is the number of random bytes in a password.
const passwordBytes = 16

// NewPassword returns a random password, which needs no escaping in a URL, for a generated database.
func NewPassword() string {
	random := make([]byte, passwordBytes)
	_, _ = rand.Read(random) // rand.Read never fails
	return base64.URLEncoding.EncodeToString(random)
}
