// Package rbacproxy builds kube-rbac-proxy as a sidecar: it serves TLS, asks the API server who calls (TokenReview) and
// whether that user has one right (SubjectAccessReview), and passes the request on to a server in the same pod. The account
// of the pod needs ClusterRole system:auth-delegator, and the pod its token.
package rbacproxy

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// Names that other software relies on.
const (
	// ContainerName is the name of the sidecar.
	ContainerName = "kube-rbac-proxy"
	// PortName is the name of the port that serves.
	PortName = "https-proxy"
	// HealthPortName is the name of the port that answers probes.
	HealthPortName = "proxy-healthz"
	// HealthPort is the number of that port unless another is requested.
	HealthPort = 8888
	// DelegatorRole is the ClusterRole that the account of the pod has to be bound to.
	DelegatorRole = "system:auth-delegator"
)

const (
	configVolume = "kube-rbac-proxy-config"
	configDir    = "/etc/kube-rbac-proxy"
	healthPath   = "/healthz"
)

// Sidecar is one proxy. All fields are needed but Resources, HealthPort, Upstream, IgnoredPaths and TLS.
type Sidecar struct {
	// Image is the image of the proxy.
	Image string
	// Resources are those that a user gives it; nil for the defaults.
	Resources *corev1.ResourceRequirements
	// Port is where it serves TLS, on all addresses of the pod.
	Port int32
	// UpstreamPort is where the server listens in the same pod.
	UpstreamPort int32
	// HealthPort is where it answers probes; zero is the constant of that name.
	HealthPort int32
	// Upstream says how the server is reached where it speaks TLS; nil is by plain HTTP on loopback.
	Upstream *Upstream
	// IgnoredPaths are passed on without asking who calls: those of probes. Older proxies than v0.6 do not know the flag.
	IgnoredPaths []string
	// ConfigMap holds the file that [Config] makes.
	ConfigMap string
	// Certificate and Key are what it serves with. They may share a volume.
	Certificate, Key File
	// TLS is the profile that it serves; zero for its own default.
	TLS tlsprofile.Profile
}

// Upstream is a server that speaks TLS in the same pod. The files are there already: the sidecar mounts what is in Mount.
type Upstream struct {
	// Host is a name that stands in its certificate and leads to loopback.
	Host string
	// CA is the file with the certificate by which it is known; Certificate and Key, when set, are what it knows the proxy by.
	CA, Certificate, Key string
	// Mount is the volume with these files.
	Mount *corev1ac.VolumeMountApplyConfiguration
}

// File is a key of a Secret that is mounted into the sidecar.
type File struct {
	// Secret and Key say where the content is.
	Secret, Key string
	// Volume is the name of the volume, and Dir the absolute path at which all keys of the Secret appear.
	Volume, Dir string
}

func (f File) path() string { return path.Join(f.Dir, f.Key) }

// Container is the sidecar itself. It writes nothing, needs no privilege, and is admitted where Pod Security is restricted.
func (s Sidecar) Container() *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().
		WithName(ContainerName).
		WithImage(s.Image).
		WithArgs(s.args()...).
		WithPorts(port(PortName, s.Port), port(HealthPortName, s.healthPort())).
		WithLivenessProbe(probe(30)).
		WithReadinessProbe(probe(5)).
		WithResources(resources.RequirementsOrDefault(s.Resources,
			corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
			corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")})).
		WithSecurityContext(resources.SidecarSecurity())
	for _, f := range s.secrets() {
		container.WithVolumeMounts(corev1ac.VolumeMount().WithName(f.Volume).WithMountPath(f.Dir))
	}
	container.WithVolumeMounts(corev1ac.VolumeMount().WithName(configVolume).WithMountPath(configDir))
	if s.Upstream != nil {
		container.WithVolumeMounts(s.Upstream.Mount)
	}
	return container
}

func (s Sidecar) args() []string {
	host := "http://127.0.0.1"
	var secured []string
	if u := s.Upstream; u != nil {
		host, secured = "https://"+u.Host, []string{"--upstream-ca-file=" + u.CA}
		if u.Certificate != "" {
			secured = append(secured, "--upstream-client-cert-file="+u.Certificate, "--upstream-client-key-file="+u.Key)
		}
	}
	if len(s.IgnoredPaths) > 0 {
		secured = append(secured, "--ignore-paths="+strings.Join(s.IgnoredPaths, ","))
	}
	return append([]string{
		fmt.Sprintf("--secure-listen-address=0.0.0.0:%d", s.Port),
		fmt.Sprintf("--upstream=%s:%d/", host, s.UpstreamPort),
		fmt.Sprintf("--proxy-endpoints-port=%d", s.healthPort()),
		"--logtostderr=true",
		"--v=0",
		"--config-file=" + path.Join(configDir, ConfigKey),
		"--tls-cert-file=" + s.Certificate.path(),
		"--tls-private-key-file=" + s.Key.path(),
	}, append(secured, s.TLS.Flags()...)...)
}

func (s Sidecar) healthPort() int32 { return cmp.Or(s.HealthPort, HealthPort) }

// Volumes are what the sidecar mounts: the Secrets, for the eyes of the owner only, and the ConfigMap. Where the platform
// gives pods no group of their own, the pod needs a security context with an fsGroup, or only root can read the Secrets.
func (s Sidecar) Volumes() []*corev1ac.VolumeApplyConfiguration {
	var volumes []*corev1ac.VolumeApplyConfiguration
	for _, f := range s.secrets() {
		volumes = append(volumes, corev1ac.Volume().WithName(f.Volume).
			WithSecret(corev1ac.SecretVolumeSource().WithSecretName(f.Secret).WithDefaultMode(0o600)))
	}
	return append(volumes, corev1ac.Volume().WithName(configVolume).
		WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(s.ConfigMap)))
}

// secrets are certificate and key, or one of them when they share a volume.
func (s Sidecar) secrets() []File {
	if s.Certificate.Volume == s.Key.Volume {
		return []File{s.Certificate}
	}
	return []File{s.Certificate, s.Key}
}

func port(name string, number int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
}

// probe asks the proxy itself and not what is behind it. Times are in seconds.
func probe(delay int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithHTTPGet(corev1ac.HTTPGetAction().
			WithPath(healthPath).
			WithPort(intstr.FromString(HealthPortName)).
			WithScheme(corev1.URISchemeHTTPS)).
		WithInitialDelaySeconds(delay).
		WithTimeoutSeconds(1).
		WithPeriodSeconds(5).
		WithSuccessThreshold(1).
		WithFailureThreshold(3)
}
