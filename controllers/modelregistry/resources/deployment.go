package resources

import (
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

const (
	// ServerContainer is the name of the container of the REST server.
	ServerContainer = "rest-container"
	// DatabaseContainer is the name of the container of a generated database.
	DatabaseContainer = "postgres"
	// Paths of probes.
	pathDirty  = "/readyz/isDirty"
	pathHealth = "/readyz/health"
	// startupFailureThreshold gives a server five minutes to start, because it answers no probe before its database runs.
	startupFailureThreshold = 60
	// podFSGroup is the group that may read the files of Secrets. OpenShift assigns a group to each namespace and rejects others.
	podFSGroup = int64(65532)
)

// deployment returns the Deployment of the server, with the proxy as sidecar if the spec has one.
func deployment(m *v1beta1.ModelRegistry, in Inputs) (*appsv1ac.DeploymentApplyConfiguration, error) {
	database, err := buildBackend(m)
	if err != nil {
		return nil, err
	}
	var proxy *rbacproxy.Sidecar
	if m.Spec.KubeRBACProxy != nil {
		if proxy, err = proxySidecar(m, in); err != nil {
			return nil, err
		}
	}
	hasVolumes := proxy != nil || len(database.volumes)+len(m.Spec.Volumes) > 0
	pod := corev1ac.PodSpec().WithSecurityContext(podSecurity(in, hasVolumes)).WithContainers(serverContainer(m, database)).WithVolumes(database.volumes...)
	d := serverDescription(m, in).Deployment(m.Spec.Replicas, pod, proxy, &m.Spec.Pods)
	in.ServerHash.Apply(d)
	return d, nil
}

// podSecurity returns the security context of the restricted profile. Pods with volumes need an fsGroup unless OpenShift assigns one.
func podSecurity(in Inputs, hasVolumes bool) *corev1ac.PodSecurityContextApplyConfiguration {
	security := resources.PodSecurity()
	if hasVolumes && !in.IsOpenShift() {
		security.WithFSGroup(podFSGroup).WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	}
	return security
}

func serverContainer(m *v1beta1.ModelRegistry, database backend) *corev1ac.ContainerApplyConfiguration {
	requested := ptr.Deref(m.Spec.Rest.Resources, corev1.ResourceRequirements{})
	return corev1ac.Container().
		WithName(ServerContainer).
		WithImage(m.Spec.Rest.Image).
		WithCommand("/model-registry", "proxy").
		WithArgs("--hostname="+listenAddress(m), "--port="+strconv.Itoa(int(restPort(m)))).
		WithArgs(database.args...).
		WithEnv(database.env...).
		WithPorts(corev1ac.ContainerPort().WithName(plainPortName).WithContainerPort(restPort(m)).WithProtocol(corev1.ProtocolTCP)).
		WithLivenessProbe(serverProbe(m, pathDirty, 30, 10, 3)).
		WithStartupProbe(serverProbe(m, pathDirty, 10, 5, startupFailureThreshold)).
		WithReadinessProbe(serverProbe(m, pathHealth, 5, 10, 3)).
		WithResources(resources.Requirements(requested.Requests, requested.Limits)).
		WithSecurityContext(resources.ContainerSecurity()).
		WithVolumeMounts(database.mounts...)
}

// listenAddress returns the address on which the server listens: behind a proxy, only inside the pod.
func listenAddress(m *v1beta1.ModelRegistry) string {
	if m.Spec.KubeRBACProxy != nil {
		return "127.0.0.1"
	}
	return "0.0.0.0"
}

// serverProbe returns a probe of the server, through its proxy if it has one. The proxy does not authorize probes. Times are in seconds.
func serverProbe(m *v1beta1.ModelRegistry, path string, delay, period, failures int32) *corev1ac.ProbeApplyConfiguration {
	get := corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString(plainPortName))
	if m.Spec.KubeRBACProxy != nil {
		get.WithPort(intstr.FromInt32(proxyPort(m))).WithScheme(corev1.URISchemeHTTPS)
	}
	return corev1ac.Probe().
		WithHTTPGet(get).
		WithInitialDelaySeconds(delay).
		WithPeriodSeconds(period).
		WithTimeoutSeconds(5).
		WithFailureThreshold(failures)
}

// proxySidecar returns the proxy of the spec. Its certificate and key may be in two Secrets.
func proxySidecar(m *v1beta1.ModelRegistry, in Inputs) (*rbacproxy.Sidecar, error) {
	cert, key := ServingCertificateRefs(m)
	if err := errors.Join(
		checkKey("spec.kubeRBACProxy.tlsCertificateSecret", cert.Key),
		checkKey("spec.kubeRBACProxy.tlsKeySecret", key.Key),
		checkPorts(restPort(m), proxyPort(m)),
	); err != nil {
		return nil, err
	}
	return &rbacproxy.Sidecar{
		Image:        m.Spec.KubeRBACProxy.Image,
		Resources:    m.Spec.KubeRBACProxy.Resources,
		Port:         proxyPort(m),
		IgnoredPaths: []string{pathDirty, pathHealth},
		UpstreamPort: restPort(m),
		ConfigMap:    ProxyConfigName(m),
		Certificate:  rbacproxy.File{Secret: cert.Name, Key: cert.Key, Volume: "kube-rbac-proxy-cert", Dir: "/etc/tls/private-cert"},
		Key:          rbacproxy.File{Secret: key.Name, Key: key.Key, Volume: "kube-rbac-proxy-key", Dir: "/etc/tls/private-key"},
		TLS:          in.TLS,
	}, nil
}

// ServingCertificateRefs returns certificate and key of the proxy: those of the spec if both are set, or else those of the managed Secret.
func ServingCertificateRefs(m *v1beta1.ModelRegistry) (cert, key *v1beta1.SecretKeyValue) {
	cert, key = m.Spec.KubeRBACProxy.TLSCertificateSecret, m.Spec.KubeRBACProxy.TLSKeySecret
	if cert == nil || key == nil {
		cert = &v1beta1.SecretKeyValue{Name: ServingSecretName(m), Key: corev1.TLSCertKey}
		key = &v1beta1.SecretKeyValue{Name: ServingSecretName(m), Key: corev1.TLSPrivateKeyKey}
	}
	return cert, key
}

// checkPorts returns an error if the server, the proxy or the probes of the proxy would use the same port.
func checkPorts(restPort, proxyPort int32) error {
	switch {
	case proxyPort == rbacproxy.HealthPort:
		return fmt.Errorf("spec.kubeRBACProxy.port %d is reserved for probes of the proxy: choose another", proxyPort)
	case restPort == rbacproxy.HealthPort:
		return fmt.Errorf("spec.rest.port %d is reserved for probes of the proxy: choose another", restPort)
	case proxyPort == restPort:
		return fmt.Errorf("spec.kubeRBACProxy.port and spec.rest.port are both %d: choose different ports", restPort)
	}
	return nil
}
