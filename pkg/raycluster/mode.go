package raycluster

import (
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
)

// Auth is how the dashboard of a cluster knows who is there.
type Auth string

// Ways to guard a dashboard.
const (
	// AuthNone leaves the dashboard open to all who reach its port.
	AuthNone Auth = ""
	// AuthOAuth is a sidecar that lets users of OpenShift in.
	AuthOAuth Auth = "oauth"
	// AuthProxy is a sidecar that has tokens reviewed by Kubernetes, where there is no OAuth of OpenShift.
	AuthProxy Auth = "proxy"
	// AuthRay is a token that Ray itself asks for.
	AuthRay Auth = "ray"
)

// Sidecar tells whether a container of ours stands before the dashboard.
func (a Auth) Sidecar() bool { return a == AuthOAuth || a == AuthProxy }

// Issuer is who issues the certificates of Ray's pods.
type Issuer string

// Issuers of certificates. All but IssuerPod leave their work in Secrets, which the pods mount.
const (
	// IssuerOperator is this program.
	IssuerOperator Issuer = "operator"
	// IssuerCertManager is cert-manager, asked by this program.
	IssuerCertManager Issuer = "cert-manager"
	// IssuerPod is each pod by itself, with the key of the authority. Clusters of the operator that is replaced have it.
	IssuerPod Issuer = "pod"
)

// Known tells whether there is such an issuer.
func (i Issuer) Valid() bool { return i == IssuerOperator || i == IssuerCertManager || i == IssuerPod }

// Mode is what is done for one cluster.
type Mode struct {
	// Skip says why nothing is done; empty when something is.
	Skip string
	// Auth is how the dashboard is guarded.
	Auth Auth
	// KeepsAccount tells that the head runs under the account of its user, and only the sidecar has a token of ours.
	KeepsServiceAccount bool
	// MTLS tells that the pods have certificates from Issuer.
	MTLS   bool
	Issuer Issuer
	// Policies tells that NetworkPolicies are made.
	Policies bool
	// ByKubeRay tells that the KubeRay of the platform does all of this, so that nothing of ours may stay in pod templates: with two
	// proxies on one port a head never gets ready.
	ByKubeRay bool
}

// Active tells whether something is done.
func (m Mode) Active() bool { return m.Skip == "" }

// Platform is what Decide goes by of the Kubernetes cluster: facts that only its administrators make.
type Platform struct {
	// OpenShift reports whether OpenShift serves Routes and issues certificates, OAuthServer whether its OAuth server runs as well.
	OpenShift, OAuthServer bool
	// KubeRaySecures tells whether KubeRay secures all clusters by itself, as that of the platform does.
	KubeRaySecures bool
}

// PlatformOf is the platform that serves this.
func PlatformOf(served capability.Set) Platform {
	return Platform{OpenShift: served.OpenShift(), OAuthServer: served.OAuth(), KubeRaySecures: served.KubeRaySecures()}
}

// Decide says what is done for a cluster. The previous one is what is stored, if it is: a cluster that has certificates
// keeps their issuer, because its pods hold what that has issued; and only a stored one can be on its way out. A controller
// gives what it reads for both.
func Decide(s config.RayCluster, on Platform, cluster, previous Cluster) Mode {
	switch {
	case previous.Terminating():
		return Mode{Skip: "it is being deleted"}
	case cluster.ManagedElsewhere():
		return Mode{Skip: "spec.managedBy gives it to " + cluster.ManagedBy()}
	case on.KubeRaySecures:
		return Mode{ByKubeRay: true}
	}
	own := cluster.UserSecurity()
	trusted := s.KubeRaySecurity == config.KubeRaySecurityTrust
	m := Mode{Policies: !own.NetworkPolicy || !trusted}
	switch {
	case !s.OAuth:
	case own.Token && trusted:
		m.Auth = AuthRay
	case on.OAuthServer:
		m.Auth = AuthOAuth
	default:
		m.Auth = AuthProxy
	}
	m.KeepsServiceAccount = m.Auth.Sidecar() && cluster.keepsServiceAccount()
	if s.MTLS && !own.MTLS {
		m.MTLS, m.Issuer = true, issuerFor(Issuer(s.Certificates), cluster, previous)
	}
	return m
}

// WhilePodsLast is the mode of an update after which the pods of the head need not be replaced: what its stored template has
// of ours stays in, and certificates that it has not are not put in, for pods with and without them cannot talk to each other.
func (m Mode) KeepForRunningPods(cluster, stored Cluster) Mode {
	has := stored.Injected()
	if !m.Auth.Sidecar() && has.Sidecar.Sidecar() {
		m.Auth, m.KeepsServiceAccount = has.Sidecar, cluster.keepsServiceAccount()
	}
	return m.WithCertificatesOf(has)
}

// WithCertificatesOf is the mode with the certificates that a pod spec has.
func (m Mode) WithCertificatesOf(has Injected) Mode {
	switch {
	case !has.MTLS:
		m.MTLS, m.Issuer = false, ""
	case has.PodIssued:
		m.MTLS, m.Issuer = true, IssuerPod
	case !m.MTLS || m.Issuer == IssuerPod:
		m.MTLS, m.Issuer = true, IssuerOperator
	}
	return m
}

// issuerFor keeps the form of what is in the pods, and otherwise follows the annotation, then the setting.
func issuerFor(wanted Issuer, cluster, previous Cluster) Issuer {
	if !wanted.Valid() {
		wanted = IssuerOperator
	}
	if value, _ := cluster.Annotation(AnnotationCertificates); Issuer(value).Valid() {
		wanted = Issuer(value)
	}
	switch has := previous.Injected(); {
	case has.PodIssued:
		return IssuerPod
	case has.MTLS && wanted == IssuerPod:
		return IssuerOperator
	}
	return wanted
}

// wantsOwnAccount tells whether the head shall run under the account that its user named.
func (c Cluster) keepsServiceAccount() bool {
	value, _ := c.Annotation(AnnotationKeepServiceAccount)
	return value == "true" && c.UserServiceAccount() != ""
}

// UserAccount is the account that the user named in the head template, also when it is overwritten by now; empty for none.
func (c Cluster) UserServiceAccount() string {
	if account := c.HeadServiceAccount(); account != c.LegacyNames().ServiceAccount && account != c.HashedNames().ServiceAccount {
		return account
	}
	account, _ := c.Annotation(AnnotationServiceAccount)
	return account
}

// Names of what is put into pod templates. Existing clusters have them.
const (
	ContainerOAuth  = oauthproxy.ContainerName
	ContainerProxy  = "kube-rbac-proxy"
	InitCertificate = "create-cert"
	VolumeProxyTLS  = "proxy-tls-secret"
	VolumeCA        = "ca-vol"
	VolumeServer    = "server-cert"
	// VolumeToken gives the sidecar, and no other container, the token of an account.
	VolumeToken = "oauth-proxy-token"
	// VolumeProxyConfig has the rules of the sidecar on Kubernetes without OAuth.
	VolumeProxyConfig = "kube-rbac-proxy-config"
)

// OwnSecurity is what KubeRay does for a cluster by itself, so that it must not be done twice.
//
// The fields can only be in an object when the KubeRay that is installed knows them: others are dropped by the API server.
type UserSecurity struct {
	// Token tells that Ray itself asks for a token, also at the dashboard (spec.authOptions, KubeRay 1.5.1).
	Token bool
	// KubernetesToken tells that the token is one of Kubernetes, which the pods of Ray check with their own account
	// (spec.authOptions.enableK8sTokenAuth, KubeRay 1.6).
	KubernetesToken bool
	// MTLS tells that KubeRay has certificates issued (spec.tlsOptions, KubeRay 1.7).
	MTLS bool
	// NetworkPolicy tells that KubeRay makes NetworkPolicies (spec.networkPolicy, KubeRay 1.7).
	NetworkPolicy bool
}

// OwnSecurity looks for what KubeRay does by itself.
func (c Cluster) UserSecurity() UserSecurity {
	auth := ptr.Deref(c.spec.AuthOptions, rayv1.AuthOptions{})
	token := auth.Mode == rayv1.AuthModeToken
	return UserSecurity{
		Token: token, KubernetesToken: token && ptr.Deref(auth.EnableK8sTokenAuth, false),
		MTLS: c.spec.TLSOptions.Enabled, NetworkPolicy: c.spec.NetworkPolicy != nil,
	}
}
