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

// deployment is a server. A volume may be attached to one node only, so the old
// pod has to go before a new one starts that mounts it.
func deployment(m *mlflowv1.MLflow, in Inputs, s Server) *appsv1ac.DeploymentApplyConfiguration {
	strategy := appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)
	if !s.volume {
		strategy = appsv1ac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType).
			WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
				WithMaxSurge(intstr.FromInt32(1)).WithMaxUnavailable(intstr.FromInt32(0)))
	}
	labels := map[string]string{}
	maps.Copy(labels, m.Spec.PodLabels)
	maps.Copy(labels, podLabelsOf(s.Name, m)) // ours win: other objects select the pods by them
	template := corev1ac.PodTemplateSpec().
		WithLabels(labels).
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
	authorities := withCABundle(m, in, caSources(m, in), true)
	parts := []part{withScratch(m), withVolume(m, s.volume), withTLS(in, s), authorities}
	if s.tracking {
		parts = append(parts, withMetrics(), withArchival(m))
	}
	pod := newPod(m, in, accountName(m), serverContainer(m, in, s, authorities.env), parts...)
	if mayShareFile(m) {
		pod.Containers[0].Command = []string{"python3.12", "-c", serveProgram, serverLock, "mlflow"}
		pod.WithTerminationGracePeriodSeconds(serverGrace)
	}
	resources.AddSpreadConstraints(pod, s.Selector(), &m.Spec.More)
	pod.ResourceClaims = s.claims(m)
	return pod
}

// serveProgram starts the server once no other one holds the lock on the volume, and stops it fast and clean. A Deployment
// replaces a pod that is being deleted while its server still runs, and two servers would write to one SQLite file. It does
// nothing where the stores, which may stand in Secrets, are no SQLite files.
//
//go:embed serve.py
var serveProgram string

// serverLock is the file that the server locks.
const serverLock = storagePath + "/.mlflow-server.lock"

// serverGrace is how long a server may take to stop, in seconds.
const serverGrace = 60

// mayShareFile reports that a second server could open a SQLite file that this one uses. Several replicas on one volume are
// what their user asked for.
func mayShareFile(m *mlflowv1.MLflow) bool {
	return m.Spec.Storage != nil && resources.ReplicasOrOne(m.Spec.Replicas) == 1 && mayBeFiles(m, envBackendStore, envRegistryStore)
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
		WithStartupProbe(probe(m, in, s, "/health", 0, 10).WithFailureThreshold(startupAttempts)).
		WithLivenessProbe(probe(m, in, s, "/health", 30, 10)).
		WithReadinessProbe(probe(m, in, s, "/api/3.0/mlflow/server-info", 5, 5))
	container.Env = serverEnv(m, in, s, certificates)
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

// host is where the server listens, for the kubelet and for the Service. With one worker uvicorn serves one family of addresses.
func (in Inputs) host() string {
	if in.IPv6 {
		return "::"
	}
	return "0.0.0.0"
}

// anyHost makes the server answer under every name.
const anyHost = "*"

// allowedHosts are the values of the Host header to which the server answers.
// MLflow compares the header as a whole, so each name stands there with and
// without the port. Without a list of the user there is no limit.
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

// probe asks an unauthenticated path below the static prefix. Times are in
// seconds. The kubelet calls by the address of the pod, so where names are
// limited it has to claim one that is allowed.
func probe(m *mlflowv1.MLflow, in Inputs, s Server, path string, delay, period int32) *corev1ac.ProbeApplyConfiguration {
	get := corev1ac.HTTPGetAction().
		WithPath(s.prefix + path).
		WithPort(intstr.FromString(portName)).
		WithScheme(corev1.URISchemeHTTPS)
	if hosts := allowedHosts(m, in, s); hosts[0] != anyHost {
		get.WithHTTPHeaders(corev1ac.HTTPHeader().WithName("Host").WithValue(hosts[0]))
	}
	checked := corev1ac.Probe().
		WithHTTPGet(get).
		WithPeriodSeconds(period).
		WithTimeoutSeconds(1).
		WithSuccessThreshold(1).
		WithFailureThreshold(3)
	if delay > 0 {
		checked.WithInitialDelaySeconds(delay)
	}
	return checked
}

// imageContainer is a container that runs the MLflow image.
func imageContainer(m *mlflowv1.MLflow, in Inputs, name string) *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().WithName(name).WithImage(ImageOf(m, in)).WithSecurityContext(containerSecurity(m))
	if image := m.Spec.Image; image != nil && image.ImagePullPolicy != "" {
		container.WithImagePullPolicy(image.ImagePullPolicy)
	}
	return container
}

// ImageOf is the image of the spec, or that of the platform.
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

// withScratch gives the server, whose root is read-only, a place to write.
func withScratch(m *mlflowv1.MLflow) part {
	size := resource.MustParse("1Gi")
	if temporary := m.Spec.TemporaryStorage; temporary != nil && temporary.SizeLimit != nil {
		size = *temporary.SizeLimit
	}
	return mounted(emptyDir("tmp", size), mount("tmp", tmpPath))
}

// withTLS mounts the serving certificate. Elsewhere than on OpenShift the pod
// may lack the group that could read a file of mode 0640.
func withTLS(in Inputs, s Server) part {
	mode := int32(0o644)
	if in.OpenShift {
		mode = 0o640
	}
	secret := corev1ac.SecretVolumeSource().WithSecretName(s.Secret).WithDefaultMode(mode)
	return mounted(corev1ac.Volume().WithName(s.Secret).WithSecret(secret), mount(s.Secret, tlsPath).WithReadOnly(true))
}

// withMetrics lets the server keep the counters of its workers. It does so on every cluster: a server that did only where ServiceMonitors
// are served would restart when that API comes or goes.
func withMetrics() part {
	p := mounted(emptyDir("metrics", resource.MustParse("100Mi")), mount("metrics", metricsPath))
	p.args = []string{"--expose-prometheus=" + metricsPath}
	return p
}

// mounted is a volume and where the main container has it.
func mounted(volume *corev1ac.VolumeApplyConfiguration, at *corev1ac.VolumeMountApplyConfiguration) part {
	return part{volumes: []*corev1ac.VolumeApplyConfiguration{volume}, mounts: []*corev1ac.VolumeMountApplyConfiguration{at}}
}

func emptyDir(name string, size resource.Quantity) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(size))
}

func mount(volume, path string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(path)
}

func caVolume(index int) string { return "ca-bundle-" + strconv.Itoa(index) }
