package resources

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"net/url"
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
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servingcert"
)

// deployment returns the Deployment of a server. With a volume its strategy is Recreate, because the volume may be attachable to one
// node only.
func deployment(m *mlflowv1.MLflow, in Inputs, s Server) *appsv1ac.DeploymentApplyConfiguration {
	strategy := appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)
	if !s.usesVolume {
		strategy = appsv1ac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType).
			WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
				WithMaxSurge(intstr.FromInt32(1)).WithMaxUnavailable(intstr.FromInt32(0)))
	}
	labels := map[string]string{}
	maps.Copy(labels, m.Spec.PodLabels)
	maps.Copy(labels, podLabelsOf(s.Name, m)) // these override podLabels, because other objects select the pods by them
	template := corev1ac.PodTemplateSpec().
		WithLabels(labels).
		WithAnnotations(m.Spec.PodAnnotations).
		WithSpec(podSpec(m, in, s))
	server := appsv1ac.Deployment(s.Name, in.Namespace).WithLabels(Labels(NameOf(m)))
	if in.VerifyPostgreSQL && s.isTracking {
		server.WithAnnotations(map[string]string{verifyAnnotation: resources.VerifyFull})
	}
	return server.
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(s.Replicas).
			WithStrategy(strategy).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(s.Selector())).
			WithTemplate(template))
}

// part holds additions to a pod and its main container, such as those for one volume.
type part struct {
	volumes        []*corev1ac.VolumeApplyConfiguration
	mounts         []*corev1ac.VolumeMountApplyConfiguration
	args           []string
	env            []envVar
	initContainers []*corev1ac.ContainerApplyConfiguration
	sidecars       []*corev1ac.ContainerApplyConfiguration
}

func podSpec(m *mlflowv1.MLflow, in Inputs, s Server) *corev1ac.PodSpecApplyConfiguration {
	caBundle := withCABundle(m, in, caSources(m, in), true)
	parts := []part{withScratch(m), withVolume(m, s.usesVolume), withTLS(in, s), caBundle}
	if s.isTracking {
		parts = append(parts, withMetrics(), withArchival(m))
	}
	pod := newPod(m, in, serviceAccountName(m), serverContainer(m, in, s, caBundle.env), parts...)
	if needsSQLiteLock(m) {
		pod.Containers[0].Command = []string{"python3.12", "-c", serveProgram, serverLockPath, "mlflow"}
		pod.WithTerminationGracePeriodSeconds(serverGracePeriodSeconds)
	}
	resources.AddSpreadConstraints(pod, s.Selector(), &m.Spec.CommonPods)
	pod.ResourceClaims = s.resourceClaims(m)
	return pod
}

// serveProgram locks the volume, starts the server, and stops it gracefully: a Deployment replaces a terminating pod while its server still
// runs, and both servers could write to one SQLite file. Without SQLite, or if the volume cannot be locked, the server starts immediately.
//
//go:embed serve.py
var serveProgram string

const serverLockPath = storagePath + "/.mlflow-server.lock"

const serverGracePeriodSeconds = 60

// needsSQLiteLock reports whether a second pod could open the SQLite file of the server. The lock is not used with several replicas: the
// user has chosen that they share the volume.
func needsSQLiteLock(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && resources.ReplicasOrOne(m.Spec.Replicas) == 1 && mayUseFiles(m, envBackendStore, envRegistryStore)
}

// startupFailureThreshold allows ten minutes with a period of ten seconds: a server with little CPU takes minutes to start.
const startupFailureThreshold = 60

// serverContainer returns the container of a server, which serves TLS on one port.
func serverContainer(m *mlflowv1.MLflow, in Inputs, s Server, caEnv []envVar) *corev1ac.ContainerApplyConfiguration {
	container := imageContainer(m, in, s.container).
		WithCommand("mlflow").
		WithArgs(serverArgs(m, in, s)...).
		WithPorts(corev1ac.ContainerPort().WithName(portName).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)).
		WithResources(s.requirements(m)).
		WithStartupProbe(probe(m, in, s, "/health", 0, 10).WithFailureThreshold(startupFailureThreshold)).
		WithLivenessProbe(probe(m, in, s, "/health", 30, 10)).
		WithReadinessProbe(probe(m, in, s, "/api/3.0/mlflow/server-info", 5, 5))
	container.Env = serverEnv(m, in, s, caEnv)
	return container
}

func serverArgs(m *mlflowv1.MLflow, in Inputs, s Server) []string {
	args := append([]string{"server"}, s.artifactArgs(m, in)...)
	return append(args,
		"--app-name=kubernetes-auth",
		"--enable-workspaces",
		"--workspace-store-uri="+workspaceStore,
		"--host="+in.host(),
		fmt.Sprintf("--port=%d", port),
		"--workers="+strconv.Itoa(int(s.workers)),
		"--uvicorn-opts=--ssl-keyfile="+tlsPath+"/tls.key --ssl-certfile="+tlsPath+"/tls.crt --proxy-headers",
		"--allowed-hosts", strings.Join(allowedHosts(m, in, s), ","),
		"--static-prefix="+s.prefix)
}

// host returns the listen address of the address family that the cluster prefers: with one worker uvicorn cannot listen on both.
func (in Inputs) host() string {
	if in.IPv6 {
		return "::"
	}
	return "0.0.0.0"
}

// anyHost allows every Host header.
const anyHost = "*"

// allowedHosts returns the allowed values of the Host header. MLflow compares the whole header, so the Service names are listed with and
// without the port. By default every value is allowed.
func allowedHosts(m *mlflowv1.MLflow, in Inputs, s Server) []string {
	if len(m.Spec.AllowedHosts) == 0 || slices.Contains(m.Spec.AllowedHosts, anyHost) {
		return []string{anyHost}
	}
	var hosts []string
	add := func(host string) {
		if host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	for _, name := range servingcert.DNSNames(s.Name, in.Namespace) {
		add(name)
		add(fmt.Sprintf("%s:%d", name, port))
	}
	if base, err := url.Parse(in.ExternalURL); err == nil {
		add(base.Host)
	}
	for _, host := range m.Spec.AllowedHosts {
		add(string(host))
	}
	return hosts
}

// probe returns an HTTP probe of an unauthenticated path. The kubelet calls the pod IP, so a Host header is set unless all are allowed.
func probe(m *mlflowv1.MLflow, in Inputs, s Server, path string, delaySeconds, periodSeconds int32) *corev1ac.ProbeApplyConfiguration {
	get := corev1ac.HTTPGetAction().
		WithPath(s.prefix + path).
		WithPort(intstr.FromString(portName)).
		WithScheme(corev1.URISchemeHTTPS)
	if hosts := allowedHosts(m, in, s); hosts[0] != anyHost {
		get.WithHTTPHeaders(corev1ac.HTTPHeader().WithName("Host").WithValue(hosts[0]))
	}
	result := corev1ac.Probe().
		WithHTTPGet(get).
		WithPeriodSeconds(periodSeconds).
		WithTimeoutSeconds(1).
		WithSuccessThreshold(1).
		WithFailureThreshold(3)
	if delaySeconds > 0 {
		result.WithInitialDelaySeconds(delaySeconds)
	}
	return result
}

// imageContainer returns a container of the MLflow image.
func imageContainer(m *mlflowv1.MLflow, in Inputs, name string) *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().WithName(name).WithImage(ImageOf(m, in)).WithSecurityContext(containerSecurity(m))
	if image := m.Spec.Image; image != nil && image.ImagePullPolicy != "" {
		container.WithImagePullPolicy(image.ImagePullPolicy)
	}
	return container
}

// ImageOf returns the image of the spec, or the default image.
func ImageOf(m *mlflowv1.MLflow, in Inputs) string {
	if m.Spec.Image == nil {
		return in.Image
	}
	return cmp.Or(m.Spec.Image.Image, in.Image)
}

const (
	tmpPath     = "/tmp"
	storagePath = "/mlflow"
	tlsPath     = "/etc/tls/private"
	metricsPath = "/prometheus"
)

// withScratch mounts a writable /tmp, because the root filesystem is read-only.
func withScratch(m *mlflowv1.MLflow) part {
	size := resource.MustParse("1Gi")
	if temporary := m.Spec.TemporaryStorage; temporary != nil && temporary.SizeLimit != nil {
		size = *temporary.SizeLimit
	}
	return withMount(emptyDir("tmp", size), resources.Mount("tmp", tmpPath))
}

// withTLS mounts the serving certificate. Outside of OpenShift the pod may lack the group that mode 0640 requires.
func withTLS(in Inputs, s Server) part {
	mode := int32(0o644)
	if in.OpenShift {
		mode = 0o640
	}
	secret := corev1ac.SecretVolumeSource().WithSecretName(s.Secret).WithDefaultMode(mode)
	return withMount(corev1ac.Volume().WithName(s.Secret).WithSecret(secret), resources.ReadOnlyMount(s.Secret, tlsPath))
}

// withMetrics always enables the metrics of the server: otherwise installing the ServiceMonitor CRD would change the pod template.
func withMetrics() part {
	p := withMount(emptyDir("metrics", resource.MustParse("100Mi")), resources.Mount("metrics", metricsPath))
	p.args = []string{"--expose-prometheus=" + metricsPath}
	return p
}

// withMount adds a volume and its mount in the main container.
func withMount(volume *corev1ac.VolumeApplyConfiguration, mount *corev1ac.VolumeMountApplyConfiguration) part {
	return part{volumes: []*corev1ac.VolumeApplyConfiguration{volume}, mounts: []*corev1ac.VolumeMountApplyConfiguration{mount}}
}

func emptyDir(name string, size resource.Quantity) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(size))
}

func caVolume(index int) string { return "ca-bundle-" + strconv.Itoa(index) }
