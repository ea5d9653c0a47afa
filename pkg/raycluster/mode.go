package raycluster

import (
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
)

// Auth is how the dashboard of a cluster authenticates callers.
type Auth string

// Values of Auth.
const (
	// AuthNone allows everyone who can reach the port.
	AuthNone Auth = ""
	// AuthOAuth is a sidecar that authenticates users of OpenShift.
	AuthOAuth Auth = "oauth"
	// AuthProxy is a sidecar that reviews tokens with Kubernetes, for clusters without OpenShift OAuth.
	AuthProxy Auth = "proxy"
	// AuthRay is a token that Ray itself requires.
	AuthRay Auth = "ray"
)

// UsesSidecar reports whether a sidecar is injected.
func (a Auth) UsesSidecar() bool { return a == AuthOAuth || a == AuthProxy }

// Issuer is the issuer of the certificates of Ray's pods.
type Issuer string

// Issuers of certificates. All but IssuerPod write the certificates into Secrets, which the pods mount.
const (
	IssuerOperator Issuer = "operator"
	// IssuerCertManager lets cert-manager issue the certificates; the operator creates the Certificates.
	IssuerCertManager Issuer = "cert-manager"
	// IssuerPod lets each pod sign its own certificate with the key of the CA, as in clusters of the CodeFlare operator.
	IssuerPod Issuer = "pod"
)

// Valid reports whether the issuer is one of the constants.
func (i Issuer) Valid() bool { return i == IssuerOperator || i == IssuerCertManager || i == IssuerPod }

// Mode is the desired security of one cluster.
type Mode struct {
	// Skip is the reason why the cluster gets no objects and no injections; "" without such a reason.
	Skip string
	// Auth is the authentication of the dashboard.
	Auth Auth
	// KeepsServiceAccount reports whether the head keeps the ServiceAccount of its user, and only the sidecar gets a token of
	// Names.ServiceAccount.
	KeepsServiceAccount bool
	// MTLS reports whether the pods have certificates from Issuer.
	MTLS   bool
	Issuer Issuer
	// Policies reports whether NetworkPolicies are created.
	Policies bool
	// ByKubeRay reports whether the KubeRay of the platform secures the cluster. Then no injection may remain in pod templates: a head with
	// two proxies on one port never becomes ready.
	ByKubeRay bool
}

// Active reports whether the cluster is not skipped.
func (m Mode) Active() bool { return m.Skip == "" }

// Platform holds the facts of the Kubernetes cluster for Decide. Only administrators can change them.
type Platform struct {
	// OpenShift reports whether OpenShift serves Routes and issues certificates, OAuthServer whether its OAuth server runs as well.
	OpenShift, OAuthServer bool
	// KubeRaySecures reports whether KubeRay configures authentication and TLS of all RayClusters, as the platform's KubeRay does.
	KubeRaySecures bool
}

// PlatformOf returns the platform for a set of served APIs.
func PlatformOf(served capability.Set) Platform {
	return Platform{OpenShift: served.IsOpenShift(), OAuthServer: served.HasOAuth(), KubeRaySecures: served.KubeRaySecures()}
}

// Decide returns the mode of a cluster. The previous cluster is the stored one, or empty on creation. Pods that issue their own
// certificates continue to do so, see issuerFor. A controller passes the same cluster for both.
func Decide(settings config.RayCluster, platform Platform, cluster, previous Cluster) Mode {
	switch {
	case previous.Terminating():
		return Mode{Skip: "it is being deleted"}
	case cluster.ManagedElsewhere():
		return Mode{Skip: "spec.managedBy gives it to " + cluster.ManagedBy()}
	case platform.KubeRaySecures:
		return Mode{ByKubeRay: true}
	}
	user := cluster.UserSecurity()
	trusted := settings.KubeRaySecurity == config.KubeRaySecurityTrust
	mode := Mode{Policies: !user.NetworkPolicy || !trusted}
	switch {
	case !settings.OAuth:
	case user.Token && trusted:
		mode.Auth = AuthRay
	case platform.OAuthServer:
		mode.Auth = AuthOAuth
	default:
		mode.Auth = AuthProxy
	}
	mode.KeepsServiceAccount = mode.Auth.UsesSidecar() && cluster.keepsServiceAccount()
	if settings.MTLS && !user.MTLS {
		mode.MTLS, mode.Issuer = true, issuerFor(Issuer(settings.Certificates), cluster, previous)
	}
	return mode
}

// KeepForRunningPods returns the mode for an update that does not replace the head pods: a sidecar is not removed, and certificates are
// neither added nor removed, because pods with and without certificates cannot communicate.
func (m Mode) KeepForRunningPods(cluster, stored Cluster) Mode {
	injected := stored.Injected()
	if !m.Auth.UsesSidecar() && injected.Sidecar.UsesSidecar() {
		m.Auth, m.KeepsServiceAccount = injected.Sidecar, cluster.keepsServiceAccount()
	}
	return m.WithCertificatesOf(injected)
}

// WithCertificatesOf returns the mode with the certificates that are injected into a pod spec.
func (m Mode) WithCertificatesOf(injected Injected) Mode {
	switch {
	case !injected.MTLS:
		m.MTLS, m.Issuer = false, ""
	case injected.PodIssued:
		m.MTLS, m.Issuer = true, IssuerPod
	case !m.MTLS || m.Issuer == IssuerPod:
		m.MTLS, m.Issuer = true, IssuerOperator
	}
	return m
}

// issuerFor returns the issuer from the annotation, or else from the setting. Pods that issue their own certificates continue to do so;
// pods with certificates from a Secret never issue their own.
func issuerFor(desired Issuer, cluster, previous Cluster) Issuer {
	if !desired.Valid() {
		desired = IssuerOperator
	}
	if value, _ := cluster.Annotation(AnnotationCertificates); Issuer(value).Valid() {
		desired = Issuer(value)
	}
	switch injected := previous.Injected(); {
	case injected.PodIssued:
		return IssuerPod
	case injected.MTLS && desired == IssuerPod:
		return IssuerOperator
	}
	return desired
}

// keepsServiceAccount reports whether the head should run under the ServiceAccount that its user set.
func (c Cluster) keepsServiceAccount() bool {
	value, _ := c.Annotation(AnnotationKeepServiceAccount)
	return value == "true" && c.UserServiceAccount() != ""
}

// UserServiceAccount returns the ServiceAccount that the user set in the head template, even if it is overwritten now, or "".
func (c Cluster) UserServiceAccount() string {
	if account := c.HeadServiceAccount(); account != c.LegacyNames().ServiceAccount && account != c.HashedNames().ServiceAccount {
		return account
	}
	account, _ := c.Annotation(AnnotationServiceAccount)
	return account
}

// Names of injected elements of pod templates. They must not change, since existing clusters have them.
const (
	ContainerOAuth  = oauthproxy.ContainerName
	ContainerProxy  = "kube-rbac-proxy"
	InitCertificate = "create-cert"
	VolumeProxyTLS  = "proxy-tls-secret"
	VolumeCA        = "ca-vol"
	VolumeServer    = "server-cert"
	// VolumeToken is the volume of the sidecar's token.
	VolumeToken = "oauth-proxy-token"
	// VolumeProxyConfig is the volume with the authorization rules of kube-rbac-proxy.
	VolumeProxyConfig = "kube-rbac-proxy-config"
)

// UserSecurity is the security that KubeRay provides for a cluster at the request of its user.
//
// A set field implies that the installed KubeRay supports it: the API server drops unknown fields.
type UserSecurity struct {
	// Token reports whether Ray requires a token, including at the dashboard (spec.authOptions, KubeRay 1.5.1).
	Token bool
	// KubernetesToken reports whether the token is a Kubernetes token, which Ray reviews with the ServiceAccount of its pods
	// (spec.authOptions.enableK8sTokenAuth, KubeRay 1.6).
	KubernetesToken bool
	// MTLS reports whether KubeRay requests certificates (spec.tlsOptions, KubeRay 1.7).
	MTLS bool
	// NetworkPolicy reports whether KubeRay creates NetworkPolicies (spec.networkPolicy, KubeRay 1.7).
	NetworkPolicy bool
}

// UserSecurity returns the security that KubeRay provides for the cluster at the request of its user.
func (c Cluster) UserSecurity() UserSecurity {
	auth := ptr.Deref(c.spec.AuthOptions, rayv1.AuthOptions{})
	token := auth.Mode == rayv1.AuthModeToken
	return UserSecurity{
		Token: token, KubernetesToken: token && ptr.Deref(auth.EnableK8sTokenAuth, false),
		MTLS: c.spec.TLSOptions.Enabled, NetworkPolicy: c.spec.NetworkPolicy != nil,
	}
}
