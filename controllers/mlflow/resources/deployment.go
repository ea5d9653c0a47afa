package resources

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// deployment is a server. A volume may be attached to one node only, so the old
// pod has to go before a new one starts that mounts it.
func deployment(m *mlflowv1.MLflow, in Inputs, s Server) *appsv1ac.DeploymentApplyConfiguration {
	strategy := appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)
	if !s.volume {
		strategy = appsv1ac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType).
			WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
				WithMaxSurge(intstr.FromInt32(1)).WithMaxUnavailable(intstr.FromInt32(0)))
	}
	template := corev1ac.PodTemplateSpec().
		WithLabels(podLabels(m, s)).
		WithAnnotations(m.Spec.PodAnnotations).
		WithSpec(podSpec(m, in, s))
	server := appsv1ac.Deployment(s.Name, in.Namespace).WithLabels(Labels(NameOf(m)))
	if in.VerifyPostgres && s.tracking {
		server.WithAnnotations(map[string]string{verifyAnnotation: resources.VerifyFull})
	}
	return server.
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(s.Replicas).
			WithStrategy(strategy).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(s.Selector())).
			WithTemplate(template))
}

// podLabels are those of the user and ours. Ours win: other objects select the
// pods by them.
func podLabels(m *mlflowv1.MLflow, s Server) map[string]string {
	merged := maps.Clone(m.Spec.PodLabels)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, podLabelsOf(s.Name, m))
	return merged
}

// part is what one concern adds to a pod and its main container.
type part struct {
	volumes        []*corev1ac.VolumeApplyConfiguration
	mounts         []*corev1ac.VolumeMountApplyConfiguration
	args           []string
	env            []envVar
	initContainers []*corev1ac.ContainerApplyConfiguration
	sidecars       []*corev1ac.ContainerApplyConfiguration
}

func podSpec(m *mlflowv1.MLflow, in Inputs, s Server) *corev1ac.PodSpecApplyConfiguration {
	authorities := withLiveCABundle(m, in, caSources(m, in))
	server := serverContainer(m, in, s, authorities.env)
	pod := corev1ac.PodSpec().
		WithServiceAccountName(accountName(m)).
		WithAutomountServiceAccountToken(true)
	serveAlone(m, pod, server)
	parts := []part{withScratch(m), withVolume(m, s.volume), withTLS(in, s), authorities}
	if s.tracking {
		parts = append(parts, withMetrics(in), withArchival(m))
	}
	assemble(pod, server, parts)
	placePod(m, in, pod)
	resources.Spread(pod, s.Selector(), &m.Spec.More)
	pod.ResourceClaims = s.claims(m)
	return pod
}

// startupAttempts is how often the startup probe may fail, every ten seconds: a server with little CPU takes minutes to start.
const startupAttempts = 60

// serverContainer runs MLflow behind TLS on one port.
func serverContainer(m *mlflowv1.MLflow, in Inputs, s Server, certificates []envVar) *corev1ac.ContainerApplyConfiguration {
	container := imageContainer(m, in, s.container).
		WithCommand("mlflow").
		WithArgs(serverArgs(m, in, s)...).
		WithPorts(corev1ac.ContainerPort().WithName(portName).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)).
		WithResources(s.needs(m)).
		WithSecurityContext(containerSecurity(m)).
		WithStartupProbe(probe(m, in, s, "/health", 0, 10).WithFailureThreshold(startupAttempts)).
		WithLivenessProbe(probe(m, in, s, "/health", 30, 10)).
		WithReadinessProbe(probe(m, in, s, "/api/3.0/mlflow/server-info", 5, 5))
	container.Env, container.EnvFrom = serverEnv(m, in, s, certificates), userEnvFrom(m)
	return container
}

func serverArgs(m *mlflowv1.MLflow, in Inputs, s Server) []string {
	args := append([]string{"server"}, s.artifactArgs(m, in)...)
	return append(args,
		"--app-name=kubernetes-auth",
		"--enable-workspaces",
		"--workspace-store-uri="+workspaceStore,
		"--host=0.0.0.0",
		fmt.Sprintf("--port=%d", port),
		"--workers="+strconv.Itoa(int(s.workers)),
		"--uvicorn-opts=--ssl-keyfile="+tlsPath+"/tls.key --ssl-certfile="+tlsPath+"/tls.crt --proxy-headers",
		"--allowed-hosts", strings.Join(allowedHosts(m, in, s), ","),
		"--static-prefix="+s.prefix)
}

// imageContainer is a container that runs the MLflow image.
func imageContainer(m *mlflowv1.MLflow, in Inputs, name string) *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().WithName(name).WithImage(ImageOf(m, in))
	if image := m.Spec.Image; image != nil && image.ImagePullPolicy != "" {
		container.WithImagePullPolicy(image.ImagePullPolicy)
	}
	return container
}

// ImageOf is the image of the spec, or that of the platform.
func ImageOf(m *mlflowv1.MLflow, in Inputs) string {
	if m.Spec.Image != nil && m.Spec.Image.Image != "" {
		return m.Spec.Image.Image
	}
	return in.Image
}

const (
	tmpPath     = "/tmp"
	storagePath = "/mlflow"
	tlsPath     = "/etc/tls/private"
	metricsPath = "/prometheus"
)

// withScratch gives the server, whose root is read-only, a place to write.
func withScratch(m *mlflowv1.MLflow) part {
	size := resource.MustParse("1Gi")
	if temporary := m.Spec.TemporaryStorage; temporary != nil && temporary.SizeLimit != nil {
		size = *temporary.SizeLimit
	}
	return part{
		volumes: []*corev1ac.VolumeApplyConfiguration{emptyDir("tmp", size)},
		mounts:  []*corev1ac.VolumeMountApplyConfiguration{mount("tmp", tmpPath)},
	}
}

// withTLS mounts the serving certificate. Elsewhere than on OpenShift the pod
// may lack the group that could read a file of mode 0640.
func withTLS(in Inputs, s Server) part {
	mode := int32(0o644)
	if in.OpenShift {
		mode = 0o640
	}
	secret := corev1ac.SecretVolumeSource().WithSecretName(s.Secret).WithDefaultMode(mode)
	return part{
		volumes: []*corev1ac.VolumeApplyConfiguration{corev1ac.Volume().WithName(s.Secret).WithSecret(secret)},
		mounts:  []*corev1ac.VolumeMountApplyConfiguration{mount(s.Secret, tlsPath).WithReadOnly(true)},
	}
}

// withMetrics lets the server keep the counters of its workers, where they
// can be scraped.
func withMetrics(in Inputs) part {
	if !in.ServiceMonitors {
		return part{}
	}
	return part{
		volumes: []*corev1ac.VolumeApplyConfiguration{emptyDir("metrics", resource.MustParse("100Mi"))},
		mounts:  []*corev1ac.VolumeMountApplyConfiguration{mount("metrics", metricsPath)},
		args:    []string{"--expose-prometheus=" + metricsPath},
	}
}

func emptyDir(name string, size resource.Quantity) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(size))
}

func mount(volume, path string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(path)
}

func caVolume(index int) string { return "ca-bundle-" + strconv.Itoa(index) }

// Stamp records what the pods of servers consume on their Deployments, and on the pod templates once that has changed.
func Stamp(desired apply.Desired, stamps map[string]reference.Stamp) {
	for _, o := range desired {
		if d, ok := o.Config.(*appsv1ac.DeploymentApplyConfiguration); ok {
			stamps[*d.Name].Mark(d)
		}
	}
}

// WithoutClaim leaves out the volume claim, which may not be written again and again.
func WithoutClaim(desired apply.Desired) apply.Desired {
	return slices.DeleteFunc(slices.Clone(desired), func(o apply.Object) bool {
		_, claim := o.Config.(*corev1ac.PersistentVolumeClaimApplyConfiguration)
		return claim
	})
}
