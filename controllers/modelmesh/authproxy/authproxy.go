// Package authproxy builds the sidecar that authenticates requests to the REST API of ModelMesh: the OAuth proxy of OpenShift or
// kube-rbac-proxy. Its functions depend only on the settings, the namespace and the served APIs.
package authproxy

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

// Names and ports that users and other components depend on.
const (
	// Port is the TLS port of the sidecar, and PortName its name in pod and Service.
	Port     = 8443
	PortName = "https"
	// HealthPort is the probe port of kube-rbac-proxy, whose default is already the management port of OpenVINO.
	HealthPort = 8444
	// DefaultServiceAccount is the service account of runtime pods on OpenShift or with a sidecar if the settings name none.
	DefaultServiceAccount = "modelmesh-serving-sa"
	// TLSSecret holds the serving certificate of the sidecar.
	TLSSecret = "model-serving-proxy-tls"
	// CookieSecret holds the cookie key of the OAuth proxy.
	CookieSecret = "model-serving-proxy-cookie"
	// RulesConfigMap holds the rules of kube-rbac-proxy.
	RulesConfigMap = "model-serving-proxy-rules"
	// VolumeTLS is the volume with the serving certificate.
	VolumeTLS = "proxy-tls"
	// VolumeRules is the volume with the rules of kube-rbac-proxy.
	VolumeRules = "kube-rbac-proxy-config"
)

const (
	// servingCertAnnotation is the alpha version of the annotation, as on Services of the legacy controller.
	servingCertAnnotation = "service.alpha.openshift.io/serving-cert-secret-name"

	meshTLSVolume = "tls-certs"
	meshTLSDir    = "/opt/kserve/mmesh/tls"
	loopback      = "127.0.0.1"
)

// Proxy is the sidecar of the runtime pods of one namespace.
type Proxy struct {
	// oauth is true for the OAuth proxy, false for kube-rbac-proxy.
	oauth     bool
	settings  meshsettings.Settings
	namespace string
	// hasServiceCA is true if the platform issues serving certificates for Services.
	hasServiceCA bool
}

// Decide returns the sidecar for a namespace, or nil if REST is disabled or needs no sidecar. The OAuth proxy cannot present a client
// certificate; if the mesh requires one, kube-rbac-proxy is used.
func Decide(s meshsettings.Settings, namespace string, apis capability.Set) *Proxy {
	openShift := apis.IsOpenShift()
	mode := s.AuthProxy.Mode
	p := &Proxy{settings: s, namespace: namespace, hasServiceCA: openShift}
	if !s.RESTProxy.Enabled || mode == meshsettings.AuthProxyNever || mode != meshsettings.AuthProxyAlways && !openShift {
		return nil
	}
	p.oauth = apis.HasOAuth() && !p.requiresClientCert()
	return p
}

// ServiceAccountName returns the service account of runtime pods: the one in the settings, or [DefaultServiceAccount] on OpenShift or
// with a sidecar. Otherwise it returns "", the default service account.
func ServiceAccountName(s meshsettings.Settings, apis capability.Set) string {
	if s.ServiceAccountName == "" && (apis.IsOpenShift() || Decide(s, "", apis) != nil) {
		return DefaultServiceAccount
	}
	return s.ServiceAccountName
}

// requiresClientCert reports whether the mesh requires client certificates.
func (p *Proxy) requiresClientCert() bool {
	return p.settings.TLS.Enabled() && p.settings.TLS.ClientAuth == "require"
}

// meshHost returns the DNS name in the certificates of the mesh.
func (p *Proxy) meshHost() string { return p.settings.ServiceName + "." + p.namespace }

// ServiceAccountName returns the service account of the pods. It needs ClusterRole system:auth-delegator.
func (p *Proxy) ServiceAccountName() string {
	return cmp.Or(p.settings.ServiceAccountName, DefaultServiceAccount)
}

// NeedsCookieSecret reports whether the sidecar uses CookieSecret.
func (p *Proxy) NeedsCookieSecret() bool { return p.oauth }

// NeedsRules reports whether the sidecar mounts RulesConfigMap.
func (p *Proxy) NeedsRules() bool { return !p.oauth }

// NeedsCertificate reports whether this operator must create TLSSecret.
func (p *Proxy) NeedsCertificate() bool { return !p.hasServiceCA }

// Rules returns the data of RulesConfigMap. Clients need permission to get Services of the namespace, as with the OAuth proxy.
func (p *Proxy) Rules() map[string]string {
	return rbacproxy.Config(rbacproxy.Attributes{APIVersion: "v1", Resource: "services", Verb: "get", Namespace: p.namespace})
}

// ServiceAnnotations returns the annotations of the Service that request TLSSecret from the platform.
func (p *Proxy) ServiceAnnotations() map[string]string {
	if !p.hasServiceCA {
		return nil
	}
	return map[string]string{servingCertAnnotation: TLSSecret}
}

// ServicePort returns the Service port of the sidecar.
func (p *Proxy) ServicePort() *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().WithName(PortName).WithPort(Port).WithTargetPort(intstr.FromString(PortName)).WithProtocol(corev1.ProtocolTCP).
		WithAppProtocol(resources.ProtocolHTTPS)
}

// HostAliases returns aliases that resolve the DNS name in the mesh certificate to the pod itself: the sidecar verifies the certificate with
// that name.
func (p *Proxy) HostAliases() []*corev1ac.HostAliasApplyConfiguration {
	if !p.settings.TLS.Enabled() {
		return nil
	}
	return []*corev1ac.HostAliasApplyConfiguration{corev1ac.HostAlias().WithIP(loopback).WithHostnames(p.meshHost())}
}

// Volumes returns the volumes of the sidecar. No other container mounts them.
func (p *Proxy) Volumes() []*corev1ac.VolumeApplyConfiguration {
	volumes := []*corev1ac.VolumeApplyConfiguration{
		resources.SecretVolume(VolumeTLS, TLSSecret),
	}
	if !p.oauth {
		volumes = append(volumes, corev1ac.Volume().WithName(VolumeRules).
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(RulesConfigMap)))
	}
	return volumes
}

// Container returns the sidecar.
func (p *Proxy) Container() *corev1ac.ContainerApplyConfiguration {
	if !p.oauth {
		return p.rbacContainer()
	}
	return p.oauthContainer()
}

func (p *Proxy) oauthArguments() oauthproxy.Arguments {
	arguments := oauthproxy.Arguments{
		Port: Port, ServiceAccount: p.ServiceAccountName(), Upstream: fmt.Sprintf("http://localhost:%d", p.settings.RESTProxy.Port),
		Review: oauthproxy.Review{Resource: "services", Namespace: p.namespace, Verb: "get"}, Extra: p.settings.AuthProxy.ExtraArgs,
	}
	if p.settings.TLS.Enabled() {
		arguments.Upstream = fmt.Sprintf("https://%s:%d", p.meshHost(), p.settings.RESTProxy.Port)
		arguments.UpstreamCA = []string{meshTLSDir + "/" + corev1.TLSCertKey}
	}
	return arguments
}

func (p *Proxy) oauthContainer() *corev1ac.ContainerApplyConfiguration {
	c := corev1ac.Container().
		WithName(oauthproxy.ContainerName).
		WithImage(p.settings.AuthProxy.Image.Reference()).
		WithArgs(p.oauthArguments().Args()...).
		WithPorts(corev1ac.ContainerPort().WithName(PortName).WithContainerPort(Port).WithProtocol(corev1.ProtocolTCP)).
		WithLivenessProbe(httpsProbe(30)).
		WithReadinessProbe(httpsProbe(5)).
		WithEnv(oauthproxy.CookieEnvVar(CookieSecret)).
		WithVolumeMounts(resources.ReadOnlyMount(VolumeTLS, oauthproxy.TLSDir)).
		WithResources(resources.Requirements(p.settings.AuthProxy.Resources.Requests, p.settings.AuthProxy.Resources.Limits)).
		WithSecurityContext(resources.SidecarSecurity())
	if p.settings.TLS.Enabled() {
		c.WithVolumeMounts(resources.ReadOnlyMount(meshTLSVolume, meshTLSDir))
	}
	return c
}

// rbacContainer returns kube-rbac-proxy. The Service targets its port under the same name as that of the OAuth proxy.
func (p *Proxy) rbacContainer() *corev1ac.ContainerApplyConfiguration {
	proxySettings := p.settings.AuthProxy
	file := func(key string) rbacproxy.File {
		return rbacproxy.File{Secret: TLSSecret, Key: key, Volume: VolumeTLS, Dir: oauthproxy.TLSDir}
	}
	sidecar := rbacproxy.Sidecar{
		Image: proxySettings.RBACImage.Reference(), Port: Port, UpstreamPort: p.settings.RESTProxy.Port, HealthPort: HealthPort, ConfigMap: RulesConfigMap,
		Certificate: file(corev1.TLSCertKey), Key: file(corev1.TLSPrivateKeyKey),
		TLS: proxySettings.TLS,
	}
	if p.settings.TLS.Enabled() {
		sidecar.Upstream = &rbacproxy.Upstream{
			Host: p.meshHost(), CA: meshTLSDir + "/" + corev1.TLSCertKey, Mount: resources.ReadOnlyMount(meshTLSVolume, meshTLSDir),
		}
	}
	if p.requiresClientCert() {
		sidecar.Upstream.Certificate, sidecar.Upstream.Key = sidecar.Upstream.CA, meshTLSDir+"/"+corev1.TLSPrivateKeyKey
	}
	c := sidecar.Container().WithArgs(proxySettings.ExtraArgs...).WithResources(resources.Requirements(proxySettings.Resources.Requests, proxySettings.Resources.Limits))
	c.Ports[0].WithName(PortName)
	return c
}

// httpsProbe returns a probe of the OAuth proxy.
func httpsProbe(delaySeconds int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithHTTPGet(corev1ac.HTTPGetAction().WithPath(oauthproxy.HealthPath).WithPort(intstr.FromInt32(Port)).WithScheme(corev1.URISchemeHTTPS)).
		WithInitialDelaySeconds(delaySeconds).
		WithTimeoutSeconds(1).
		WithPeriodSeconds(5).
		WithSuccessThreshold(1).
		WithFailureThreshold(3)
}
