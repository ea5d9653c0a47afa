package raycluster

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

const (
	// tokenDir is the directory in which Kubernetes clients look for a token.
	tokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is the validity of a token; the kubelet renews it in time.
	tokenSeconds = 3600
)

// Sidecar builds the proxy container in front of the dashboard.
type Sidecar struct {
	// Auth is AuthOAuth or AuthProxy.
	Auth Auth
	// Names and Namespace of the cluster.
	Names     Names
	Namespace string
	// DashboardPort is the port of the dashboard; 0 for the default.
	DashboardPort int32
	Image         string
	// Resources are the default resources; users may set others.
	Resources corev1.ResourceRequirements
	// TLS is the profile of kube-rbac-proxy; the OAuth proxy has no such option.
	TLS tlsprofile.Profile
	// SecretToken mounts the token from a Secret, because the pod runs under another ServiceAccount.
	SecretToken bool
	// CookieInArgs passes the cookie secret in the command line, as earlier releases did.
	CookieInArgs bool
}

// RequiredAccess returns the access that kube-rbac-proxy requires of callers of the dashboard. The OAuth proxy requires the same.
func RequiredAccess(namespace string) rbacproxy.Attributes {
	return rbacproxy.Attributes{APIVersion: "v1", Resource: "pods", Verb: "get", Namespace: namespace}
}

// Container returns the container of the sidecar.
func (s Sidecar) Container() *corev1ac.ContainerApplyConfiguration {
	if s.Auth == AuthProxy {
		return s.rbacProxy()
	}
	cookie := oauthproxy.CookieEnvVar(s.Names.CookieSecret)
	if s.CookieInArgs {
		cookie = oauthproxy.CookieArgEnvVar(s.Names.CookieSecret)
	}
	return corev1ac.Container().
		WithName(ContainerOAuth).
		WithImage(s.Image).
		WithArgs(s.arguments().Args()...).
		WithPorts(corev1ac.ContainerPort().WithName(PortProxyName).WithContainerPort(PortProxy).WithProtocol(corev1.ProtocolTCP)).
		WithEnv(cookie).
		WithVolumeMounts(resources.ReadOnlyMount(VolumeProxyTLS, oauthproxy.TLSDir), resources.ReadOnlyMount(VolumeToken, tokenDir)).
		WithResources(resources.Requirements(s.Resources.Requests, s.Resources.Limits)).
		WithSecurityContext(resources.SidecarSecurity())
}

func (s Sidecar) upstream() int32 { return cmp.Or(s.DashboardPort, defaultPorts[PortDashboard]) }

func (s Sidecar) arguments() oauthproxy.Arguments {
	return oauthproxy.Arguments{
		Port: PortProxy, ServiceAccount: s.Names.ServiceAccount, Upstream: fmt.Sprintf("http://localhost:%d", s.upstream()),
		Review:       oauthproxy.Review{Resource: "pods", Namespace: s.Namespace, Verb: "get"},
		CookieInArgs: s.CookieInArgs,
	}
}

// LegacyArgs returns the arguments of the CodeFlare operator's sidecars. They let every user of OpenShift log in by browser.
func (s Sidecar) LegacyArgs() []string {
	s.CookieInArgs = true
	return s.arguments().DelegateArgs()
}

// rbacProxy returns kube-rbac-proxy. Its port has the same name as that of the OAuth proxy, because the Service refers to this name.
func (s Sidecar) rbacProxy() *corev1ac.ContainerApplyConfiguration {
	file := func(key string) rbacproxy.File {
		return rbacproxy.File{Secret: s.Names.ProxyTLS, Key: key, Volume: VolumeProxyTLS, Dir: oauthproxy.TLSDir}
	}
	container := rbacproxy.Sidecar{
		Image: s.Image, Port: PortProxy, UpstreamPort: s.upstream(), ConfigMap: s.Names.ProxyConfig,
		Certificate: file("tls.crt"), Key: file("tls.key"), TLS: s.TLS,
	}.Container()
	container.Ports[0].WithName(PortProxyName)
	return container.WithVolumeMounts(resources.ReadOnlyMount(VolumeToken, tokenDir)).WithResources(resources.Requirements(s.Resources.Requests, s.Resources.Limits))
}

// Volumes returns the volumes of the sidecar. They have the default file mode: only the sidecar mounts them, and the autoscaler the token.
func (s Sidecar) Volumes() []*corev1ac.VolumeApplyConfiguration {
	volumes := []*corev1ac.VolumeApplyConfiguration{resources.SecretVolume(VolumeProxyTLS, s.Names.ProxyTLS)}
	if s.Auth == AuthProxy {
		volumes = append(volumes, corev1ac.Volume().WithName(VolumeProxyConfig).
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(s.Names.ProxyConfig)))
	}
	return append(volumes, s.tokenVolume())
}

// tokenVolume returns a volume with the same files as the one that Kubernetes mounts for a ServiceAccount.
func (s Sidecar) tokenVolume() *corev1ac.VolumeApplyConfiguration {
	if s.SecretToken {
		return resources.SecretVolume(VolumeToken, s.Names.TokenSecret)
	}
	return corev1ac.Volume().WithName(VolumeToken).WithProjected(corev1ac.ProjectedVolumeSource().WithSources(
		corev1ac.VolumeProjection().WithServiceAccountToken(corev1ac.ServiceAccountTokenProjection().WithPath("token").WithExpirationSeconds(tokenSeconds)),
		corev1ac.VolumeProjection().WithConfigMap(corev1ac.ConfigMapProjection().WithName("kube-root-ca.crt").
			WithItems(corev1ac.KeyToPath().WithKey("ca.crt").WithPath("ca.crt"))),
		corev1ac.VolumeProjection().WithDownwardAPI(corev1ac.DownwardAPIProjection().WithItems(corev1ac.DownwardAPIVolumeFile().
			WithPath("namespace").WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.namespace")))),
	))
}

// TokenMount returns the mount of the token.
func TokenMount() *corev1ac.VolumeMountApplyConfiguration {
	return resources.ReadOnlyMount(VolumeToken, tokenDir)
}
