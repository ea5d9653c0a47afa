package resources

import (
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
// volume at $1. A Deployment may replace a terminating pod whose server still runs, which PostgreSQL does not detect, because both have
// process ID 1. Descriptor 9 holds the lock and is inherited by all server processes, so that the lock ends with the last of them.
const postgresCommand = `command -v flock >/dev/null || { echo "This image has no flock (util-linux), which keeps two servers from using one volume." >&2; exit 1; }
exec 9>>"$1/.lock" || exit 1
trap 'exit 0' INT TERM
until flock --timeout 10 9; do
  [ $? -eq 1 ] || exit 1
  echo "Another server still uses this volume; waiting until it has stopped." >&2
done
trap - INT TERM
exec container-entrypoint run-postgresql`

// ExclusivePostgres makes a container of an sclorg image wait until no other server uses the volume at dir.
func ExclusivePostgres(container *corev1ac.ContainerApplyConfiguration, dir string) *corev1ac.ContainerApplyConfiguration {
	return StopPostgresFast(container).WithCommand("/bin/sh", "-c", postgresCommand, "postgres", dir)
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
	// Container is the name of the container.
	Container, Image string
	Port             int32
	// Env has user, password and database, which the image creates on an empty volume.
	Env []*corev1ac.EnvVarApplyConfiguration
	// Liveness and Readiness are its probes.
	Liveness, Readiness *corev1ac.ProbeApplyConfiguration
	// Resources of the container; nil for PostgresResources.
	Resources *corev1ac.ResourceRequirementsApplyConfiguration
	Security  *corev1ac.PodSecurityContextApplyConfiguration
	// Volume is the data volume.
	Volume *corev1ac.VolumeApplyConfiguration
	// Exclusive adds the lock of ExclusivePostgres, for a persistent volume.
	Exclusive bool
	// Certificate is the Secret with the serving certificate; empty without TLS.
	Certificate string
	// Selector is the selector of its pods.
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
		WithVolumeMounts(corev1ac.VolumeMount().WithName(*p.Volume.Name).WithMountPath(PostgresDir))
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
