package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	// DatabaseContainer is the name of the container of the database.
	DatabaseContainer   = "postgresql"
	databasePortName    = "postgresql"
	databaseVolume      = "postgres-data"
	defaultDatabaseSize = "5Gi"
)

// BuildDatabase returns the objects of the managed database without its Secret, whose password exists only in the cluster. The NetworkPolicies
// allow ingress only from the server and deny all egress.
func BuildDatabase(c *aihubv1alpha1.Catalog, in Inputs) apply.Desired {
	var objects apply.Desired
	clients := resources.AllowTCP(databasePort).WithFrom(resources.PodPeer(Selector(Name)))
	objects.Add(databaseDeployment(c, in), databaseService(c), resources.IngressPolicy(databaseMeta(c, DatabaseName), Selector(DatabaseName), clients),
		resources.EgressPolicy(databaseMeta(c, DatabaseEgress), Selector(DatabaseName)))
	return objects
}

func databaseDeployment(c *aihubv1alpha1.Catalog, in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	server := resources.Postgres{
		Container: DatabaseContainer, Image: in.Images.Postgres, Port: databasePort,
		Env: []*corev1ac.EnvVarApplyConfiguration{
			resources.SecretEnvVar("POSTGRESQL_USER", DatabaseName, KeyUser),
			resources.SecretEnvVar("POSTGRESQL_PASSWORD", DatabaseName, KeyPassword),
			resources.SecretEnvVar("POSTGRESQL_DATABASE", DatabaseName, KeyDatabase),
		},
		Liveness:  bashProbe("/usr/bin/pg_isready -U $POSTGRESQL_USER -d $POSTGRESQL_DATABASE", 30, 2),
		Readiness: bashProbe("psql -w -U $POSTGRESQL_USER -d $POSTGRESQL_DATABASE -c 'SELECT 1'", 10, 5),
		Resources: databaseResources(c),
		Security:  resources.PodSecurity(),
		Volume:    corev1ac.Volume().WithName(databaseVolume).WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(databaseSize(c))),
		Selector:  Selector(DatabaseName),
	}
	if EncryptsDatabase(c) {
		server.Certificate = DatabaseCertificate
		if !in.IsOpenShift() { // OpenShift assigns a group
			server.Security.WithFSGroup(PodFSGroup)
		}
	}
	d := server.Deployment(databaseMeta(c, DatabaseName)).
		WithAnnotations(map[string]string{"template.alpha.openshift.io/wait-for-ready": "true"})
	d.Spec.WithRevisionHistoryLimit(0).Template.WithLabels(map[string]string{"sidecar.istio.io/inject": "false"})
	resources.SetScheduling(d.Spec.Template.Spec, &c.Spec.Pods)
	container := d.Spec.Template.Spec.Containers[0].
		WithImagePullPolicy(corev1.PullIfNotPresent).WithTerminationMessagePath("/dev/termination-log")
	container.SecurityContext.WithPrivileged(false)
	return d
}

// bashProbe returns a probe with a command that expands variables. Times are in seconds.
func bashProbe(command string, delay, timeout int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithExec(corev1ac.ExecAction().WithCommand("bash", "-c", command)).
		WithInitialDelaySeconds(delay).
		WithTimeoutSeconds(timeout)
}

func databaseSize(c *aihubv1alpha1.Catalog) resource.Quantity {
	if v := databaseSpec(c).Volume; v != nil && v.SizeLimit != nil {
		return *v.SizeLimit
	}
	return resource.MustParse(defaultDatabaseSize)
}

// databaseResources returns the resources of the spec, or the defaults if they are empty.
func databaseResources(c *aihubv1alpha1.Catalog) *corev1ac.ResourceRequirementsApplyConfiguration {
	if requested := resourcesSpec(c).Postgres; requested != nil && len(requested.Requests)+len(requested.Limits) > 0 {
		return resources.Requirements(requested.Requests, requested.Limits)
	}
	return resources.PostgresResources()
}

func databaseService(c *aihubv1alpha1.Catalog) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(DatabaseName, c.Namespace).WithLabels(Labels(DatabaseName)).
		WithAnnotations(map[string]string{
			"template.openshift.io/expose-uri": `postgres://{.spec.clusterIP}:{.spec.ports[?(@.name=="postgresql")].port}`,
		}).
		WithSpec(corev1ac.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSessionAffinity(corev1.ServiceAffinityNone).
			WithSelector(map[string]string{LabelApp: Name, LabelName: DatabaseName}).
			WithPorts(corev1ac.ServicePort().WithName(databasePortName).WithPort(databasePort).
				WithTargetPort(intstr.FromInt32(databasePort)).WithProtocol(corev1.ProtocolTCP).WithAppProtocol("tcp")))
}
