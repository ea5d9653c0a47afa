// Package rbacproxy builds kube-rbac-proxy as a sidecar. It serves TLS, authenticates callers by a TokenReview, authorizes them by a
// SubjectAccessReview and forwards requests to a server in the same pod. The ServiceAccount of the pod needs ClusterRole
// system:auth-delegator, and the pod its token.
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
	// PortName is the name of the serving port.
	PortName = "https-proxy"
	// HealthPortName is the name of the port of probes.
	HealthPortName = "proxy-healthz"
	// HealthPort is the default port of probes.
	HealthPort = 8888
	// DelegatorRole is the ClusterRole that the ServiceAccount of the pod must be bound to.
	DelegatorRole = "system:auth-delegator"
)

const (
	configVolume = "kube-rbac-proxy-config"
	configDir    = "/etc/kube-rbac-proxy"
	healthPath   = "/healthz"
)

// Sidecar holds the settings of the proxy. Resources, HealthPort, Upstream, IgnoredPaths and TLS are optional.
type Sidecar struct {
	// Image is the image of the proxy.
	Image string
	// Resources are those of the user; nil for the defaults.
	Resources *corev1.ResourceRequirements
	// Port is the port with TLS, on all addresses of the pod.
	Port int32
	// UpstreamPort is the port of the server in the same pod.
	UpstreamPort int32
	// HealthPort is the port of probes; zero for the constant HealthPort.
	HealthPort int32
	// Upstream describes a server with TLS; nil for plain HTTP on loopback.
	Upstream *Upstream
	// IgnoredPaths are forwarded without authentication, for probes. The proxy supports them since v0.6.
	IgnoredPaths []string
	// ConfigMap is the name of the ConfigMap with the data of [Config].
	ConfigMap string
	// Certificate and Key are the files of the proxy. They may share a volume.
	Certificate, Key File
	// TLS is the TLS profile; zero for the default of the proxy.
	TLS tlsprofile.Profile
}

// Upstream is a server with TLS in the same pod. Its files are in Mount.
type Upstream struct {
	// Host is a name in the certificate of the server that resolves to loopback.
	Host string
	// CA is the file with the CA of the server; Certificate and Key, if set, authenticate the proxy.
	CA, Certificate, Key string
	// Mount is the volume with these files.
	Mount *corev1ac.VolumeMountApplyConfiguration
}

// File is a key of a Secret that is mounted into the sidecar.
type File struct {
	// Secret and Key identify the content.
	Secret, Key string
	// Volume is the name of the volume, and Dir its absolute mount path.
	Volume, Dir string
}

func (f File) path() string { return path.Join(f.Dir, f.Key) }

// Container returns the container of the sidecar. It meets the restricted Pod Security Standard.
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
		container.WithVolumeMounts(resources.Mount(f.Volume, f.Dir))
	}
	container.WithVolumeMounts(resources.Mount(configVolume, configDir))
	if s.Upstream != nil {
		container.WithVolumeMounts(s.Upstream.Mount)
	}
	return container
}

func (s Sidecar) args() []string {
	host := "http://127.0.0.1"
	var flags []string
	if u := s.Upstream; u != nil {
		host, flags = "https://"+u.Host, []string{"--upstream-ca-file=" + u.CA}
		if u.Certificate != "" {
			flags = append(flags, "--upstream-client-cert-file="+u.Certificate, "--upstream-client-key-file="+u.Key)
		}
	}
	if len(s.IgnoredPaths) > 0 {
		flags = append(flags, "--ignore-paths="+strings.Join(s.IgnoredPaths, ","))
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
	}, append(flags, s.TLS.Flags()...)...)
}

func (s Sidecar) healthPort() int32 { return cmp.Or(s.HealthPort, HealthPort) }

// Volumes returns the volumes of Secrets, readable by their owner only, and of the ConfigMap. Unless OpenShift assigns a group, the pod
// needs an fsGroup, because only root could read the Secrets.
func (s Sidecar) Volumes() []*corev1ac.VolumeApplyConfiguration {
	var volumes []*corev1ac.VolumeApplyConfiguration
	for _, f := range s.secrets() {
		volumes = append(volumes, corev1ac.Volume().WithName(f.Volume).
			WithSecret(corev1ac.SecretVolumeSource().WithSecretName(f.Secret).WithDefaultMode(0o600)))
	}
	return append(volumes, corev1ac.Volume().WithName(configVolume).
		WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(s.ConfigMap)))
}

// secrets returns certificate and key, or one of them if they share a volume.
func (s Sidecar) secrets() []File {
	if s.Certificate.Volume == s.Key.Volume {
		return []File{s.Certificate}
	}
	return []File{s.Certificate, s.Key}
}

func port(name string, number int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
}

// probe returns a probe of the proxy, not of the server. Times are in seconds.
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
