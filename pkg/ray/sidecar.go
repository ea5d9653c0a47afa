package ray

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	proxyTLSDir = "/etc/tls/private"
	// tokenDir is where programs in pods look for the token of their account.
	tokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is how long a token is valid; the kubelet renews it in time.
	tokenSeconds = 3600
)

// Sidecar is the container before the dashboard.
type Sidecar struct {
	// Auth is AuthOAuth or AuthProxy.
	Auth Auth
	// Names and Namespace are those of the cluster.
	Names     Names
	Namespace string
	// Image is that of the sidecar.
	Image string
	// Resources are those of a sidecar whose user sets none.
	Resources corev1.ResourceRequirements
	// SecretToken takes the token from a Secret instead of that of the pod, which then runs under another account.
	SecretToken bool
}

// review is the right that callers of the dashboard need, in the order in which it was always written.
type review struct {
	Resource  string `json:"resource"`
	Namespace string `json:"namespace"`
	Verb      string `json:"verb"`
}

// Rule is the right that callers of the dashboard need, for the proxy on Kubernetes without OAuth: the same as elsewhere.
func Rule(namespace string) rbacproxy.Attributes {
	return rbacproxy.Attributes{APIVersion: "v1", Resource: "pods", Verb: "get", Namespace: namespace}
}

// Container is the sidecar. An error means that the namespace is no text that JSON can hold.
func (s Sidecar) Container() (*corev1ac.ContainerApplyConfiguration, error) {
	if s.Auth == AuthProxy {
		return s.proxy(), nil
	}
	return s.oauth()
}

func (s Sidecar) oauth() (*corev1ac.ContainerApplyConfiguration, error) {
	args, err := s.OriginalArgs()
	if err != nil {
		return nil, err
	}
	sar, err := json.Marshal(review{"pods", s.Namespace, "get"})
	if err != nil {
		return nil, fmt.Errorf("encoding the access review: %w", err)
	}
	return corev1ac.Container().
		WithName(ContainerOAuth).
		WithImage(s.Image).
		WithArgs(append(args, "--openshift-sar="+string(sar))...).
		WithPorts(proxyPort()).
		WithEnv(corev1ac.EnvVar().WithName("COOKIE_SECRET").WithValueFrom(corev1ac.EnvVarSource().
			WithSecretKeyRef(corev1ac.SecretKeySelector().WithName(s.Names.CookieSecret).WithKey(KeyCookie)))).
		WithVolumeMounts(mount(VolumeProxyTLS, proxyTLSDir), mount(VolumeToken, tokenDir)).
		WithResources(resourcesOf(s.Resources)).
		WithSecurityContext(resources.SidecarSecurity()), nil
}

// OriginalArgs are those which sidecars of the operator that is replaced have: with them every user of OpenShift may log in
// by the browser.
func (s Sidecar) OriginalArgs() ([]string, error) {
	urls, err := json.Marshal(map[string]review{"/": {"pods", s.Namespace, "get"}})
	if err != nil {
		return nil, fmt.Errorf("encoding the delegate URLs: %w", err)
	}
	return []string{
		fmt.Sprintf("--https-address=:%d", PortProxy),
		"--provider=openshift",
		"--openshift-service-account=" + s.Names.ServiceAccount,
		fmt.Sprintf("--upstream=http://localhost:%d", PortDashboard),
		"--tls-cert=" + proxyTLSDir + "/tls.crt",
		"--tls-key=" + proxyTLSDir + "/tls.key",
		"--cookie-secret=$(COOKIE_SECRET)",
		"--openshift-delegate-urls=" + string(urls),
	}, nil
}

// proxy has the port name of the other sidecar, by which Services lead to it.
func (s Sidecar) proxy() *corev1ac.ContainerApplyConfiguration {
	file := func(key string) rbacproxy.File {
		return rbacproxy.File{Secret: s.Names.ProxyTLS, Key: key, Volume: VolumeProxyTLS, Dir: proxyTLSDir}
	}
	container := rbacproxy.Sidecar{
		Image: s.Image, Port: PortProxy, UpstreamPort: PortDashboard, ConfigMap: s.Names.ProxyConfig,
		Certificate: file("tls.crt"), Key: file("tls.key"),
	}.Container()
	container.Ports[0].WithName(PortProxyName)
	return container.WithVolumeMounts(mount(VolumeToken, tokenDir)).WithResources(resourcesOf(s.Resources))
}

// Volumes are those which the sidecar mounts. Nobody else in the pod mounts them, so their files may be readable for all.
func (s Sidecar) Volumes() []*corev1ac.VolumeApplyConfiguration {
	volumes := []*corev1ac.VolumeApplyConfiguration{secretVolume(VolumeProxyTLS, s.Names.ProxyTLS)}
	if s.Auth == AuthProxy {
		volumes = append(volumes, corev1ac.Volume().WithName(VolumeProxyConfig).
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(s.Names.ProxyConfig)))
	}
	return append(volumes, s.token())
}

// token is laid out like what Kubernetes mounts into every container of an account that has it so.
func (s Sidecar) token() *corev1ac.VolumeApplyConfiguration {
	if s.SecretToken {
		return secretVolume(VolumeToken, s.Names.TokenSecret)
	}
	return corev1ac.Volume().WithName(VolumeToken).WithProjected(corev1ac.ProjectedVolumeSource().WithSources(
		corev1ac.VolumeProjection().WithServiceAccountToken(corev1ac.ServiceAccountTokenProjection().WithPath("token").WithExpirationSeconds(tokenSeconds)),
		corev1ac.VolumeProjection().WithConfigMap(corev1ac.ConfigMapProjection().WithName("kube-root-ca.crt").
			WithItems(corev1ac.KeyToPath().WithKey("ca.crt").WithPath("ca.crt"))),
		corev1ac.VolumeProjection().WithDownwardAPI(corev1ac.DownwardAPIProjection().WithItems(corev1ac.DownwardAPIVolumeFile().
			WithPath("namespace").WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.namespace")))),
	))
}

// TokenMount is how a container gets at the token.
func TokenMount() *corev1ac.VolumeMountApplyConfiguration { return mount(VolumeToken, tokenDir) }

func proxyPort() *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(PortProxyName).WithContainerPort(PortProxy).WithProtocol(corev1.ProtocolTCP)
}

func mount(volume, path string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(path).WithReadOnly(true)
}

func secretVolume(name, secret string, items ...*corev1ac.KeyToPathApplyConfiguration) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(secret).WithItems(items...))
}

func resourcesOf(r corev1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	return corev1ac.ResourceRequirements().WithRequests(r.Requests).WithLimits(r.Limits)
}
