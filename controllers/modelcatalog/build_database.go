package modelcatalog

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	databaseContainer = "postgresql"
	databaseVolume    = "postgres-data"
	databaseDir       = "/var/lib/pgsql/data"
	defaultSize       = "5Gi"
)

// buildDatabase returns the database that is run beside the server. Its Secret is kept otherwise: nobody knows its password
// but the cluster.
func buildDatabase(c *aihubv1alpha1.Catalog, in Inputs) apply.Desired {
	var objects apply.Desired
	objects.Add(databaseDeployment(c, in), databaseService(c), databasePolicy(c))
	return objects
}

func databaseDeployment(c *aihubv1alpha1.Catalog, in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	pod := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithTerminationGracePeriodSeconds(resources.PostgresGraceSeconds).
		WithSecurityContext(resources.PodSecurity()).
		WithContainers(resources.StopPostgresFast(databaseServer(c, in))).
		WithVolumes(corev1ac.Volume().WithName(databaseVolume).WithEmptyDir(
			corev1ac.EmptyDirVolumeSource().WithSizeLimit(databaseSize(c))))
	podLabels := selector(databaseName)
	podLabels["sidecar.istio.io/inject"] = "false"
	return appsv1ac.Deployment(databaseName, c.Namespace).WithLabels(labels(databaseName)).
		WithAnnotations(map[string]string{"template.alpha.openshift.io/wait-for-ready": "true"}).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(1).
			WithRevisionHistoryLimit(0).
			WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(databaseName))).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(podLabels).WithSpec(pod)))
}

func databaseServer(c *aihubv1alpha1.Catalog, in Inputs) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(databaseContainer).
		WithImage(in.Images.Postgres).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithEnv(
			resources.FromSecret("POSTGRESQL_USER", databaseName, keyUser),
			resources.FromSecret("POSTGRESQL_PASSWORD", databaseName, keyPassword),
			resources.FromSecret("POSTGRESQL_DATABASE", databaseName, keyDatabase),
		).
		WithPorts(corev1ac.ContainerPort().WithContainerPort(databasePort).WithProtocol(corev1.ProtocolTCP)).
		WithLivenessProbe(bashProbe("/usr/bin/pg_isready -U $POSTGRESQL_USER -d $POSTGRESQL_DATABASE", 30, 2)).
		WithReadinessProbe(bashProbe("psql -w -U $POSTGRESQL_USER -d $POSTGRESQL_DATABASE -c 'SELECT 1'", 10, 5)).
		WithResources(databaseResources(c)).
		WithSecurityContext(resources.ContainerSecurity().WithPrivileged(false)).
		WithTerminationMessagePath("/dev/termination-log").
		WithVolumeMounts(corev1ac.VolumeMount().WithName(databaseVolume).WithMountPath(databaseDir))
}

// bashProbe runs a command that finds its arguments in the environment. Times are in seconds.
func bashProbe(command string, delay, timeout int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithExec(corev1ac.ExecAction().WithCommand("bash", "-c", command)).
		WithInitialDelaySeconds(delay).
		WithTimeoutSeconds(timeout)
}

func databaseSize(c *aihubv1alpha1.Catalog) resource.Quantity {
	if d := c.Spec.Database; d != nil && d.Volume != nil && d.Volume.SizeLimit != nil {
		return *d.Volume.SizeLimit
	}
	return resource.MustParse(defaultSize)
}

// databaseResources are those of the spec, unless they say nothing.
func databaseResources(c *aihubv1alpha1.Catalog) *corev1ac.ResourceRequirementsApplyConfiguration {
	if r := c.Spec.Resources; r != nil && r.Postgres != nil && len(r.Postgres.Requests)+len(r.Postgres.Limits) > 0 {
		return resources.Requirements(r.Postgres.Requests, r.Postgres.Limits)
	}
	return resources.Requirements(amounts("250m", "256Mi"), amounts("500m", "512Mi"))
}

func databaseService(c *aihubv1alpha1.Catalog) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(databaseName, c.Namespace).WithLabels(labels(databaseName)).
		WithAnnotations(map[string]string{
			"template.openshift.io/expose-uri": `postgres://{.spec.clusterIP}:{.spec.ports[?(@.name=="postgresql")].port}`,
		}).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSessionAffinity(corev1.ServiceAffinityNone).
			WithSelector(map[string]string{labelApp: baseName, labelName: databaseName}).
			WithPorts(corev1ac.ServicePort().WithName(databaseContainer).WithPort(databasePort).
				WithProtocol(corev1.ProtocolTCP).WithAppProtocol("tcp")))
}

// databasePolicy admits the server and nobody else.
func databasePolicy(c *aihubv1alpha1.Catalog) runtime.ApplyConfiguration {
	meta := metaOf(c, databaseName)
	meta.Labels = labels(databaseName)
	return resources.IngressPolicy(meta, selector(databaseName),
		resources.AllowTCP(databasePort).WithFrom(resources.PodsWith(selector(baseName))))
}
