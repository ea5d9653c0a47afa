// Package authproxy decides how the REST API of the model mesh is guarded, and builds the sidecar that does it: the OAuth proxy
// of OpenShift where the platform has OAuth, kube-rbac-proxy elsewhere. All of it is a pure function of settings and platform.
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

// Names that other software relies on.
const (
	// Port is where the sidecar serves TLS, and PortName the name of that port in pod and Service.
	Port     = 8443
	PortName = "https"
	// HealthPort answers the probes of kube-rbac-proxy. Its usual one is that of OpenVINO's management.
	HealthPort = 8444
	// Account is the service account of runtime pods where the settings name none.
	Account = "modelmesh-serving-sa"
	// TLSSecret holds the serving certificate of the sidecar.
	TLSSecret = "model-serving-proxy-tls"
	// CookieSecret holds the key of the OAuth proxy's cookies.
	CookieSecret = "model-serving-proxy-cookie"
	// RulesConfigMap holds the rules of kube-rbac-proxy.
	RulesConfigMap = "model-serving-proxy-rules"
	// VolumeTLS is the volume with the serving certificate.
	VolumeTLS = "proxy-tls"
	// VolumeRules is the volume with the rules of kube-rbac-proxy.
	VolumeRules = "kube-rbac-proxy-config"

	// servingCertAnnotation is the older one of two that mean the same. Services of the original have it.
	servingCertAnnotation = "service.alpha.openshift.io/serving-cert-secret-name"

	meshTLSVolume = "tls-certs"
	meshTLSDir    = "/opt/kserve/mmesh/tls"
	loopback      = "127.0.0.1"
)

type kind int

const (
	oauth kind = iota
	rbac
)

// Proxy is the sidecar of the runtime pods of one namespace.
type Proxy struct {
	kind      kind
	settings  meshsettings.Settings
	namespace string
	// serviceCA: the platform signs certificates of Services.
	serviceCA bool
}

// Decide returns the sidecar that the settings of a namespace ask for on a platform, or nil for none: there is nothing to guard
// without the REST proxy. The OAuth proxy has no client certificate to show, so where the mesh demands one, it is kube-rbac-proxy.
func Decide(s meshsettings.Settings, namespace string, served capability.Set) *Proxy {
	openShift := served.OpenShift()
	mode := s.AuthProxy.Mode
	p := &Proxy{kind: rbac, settings: s, namespace: namespace, serviceCA: openShift}
	switch {
	case !s.RESTProxy.Enabled, mode == meshsettings.AuthProxyNever, mode != meshsettings.AuthProxyAlways && !openShift:
		return nil
	case served.OAuth() && !p.mutual():
		p.kind = oauth
	}
	return p
}

// AccountOf is the service account of runtime pods: the one that the settings name, else [Account] where the platform or a sidecar
// relies on it, else "" for the account that every namespace has.
func AccountOf(s meshsettings.Settings, served capability.Set) string {
	if s.ServiceAccountName == "" && (served.OpenShift() || Decide(s, "", served) != nil) {
		return Account
	}
	return s.ServiceAccountName
}

// mutual tells that the mesh demands certificates of its clients.
func (p *Proxy) mutual() bool {
	return p.settings.TLS.Enabled() && p.settings.TLS.ClientAuth == "require"
}

// meshName is the name that certificates of the mesh have to bear.
func (p *Proxy) meshName() string { return p.settings.ServiceName + "." + p.namespace }

// ServiceAccount is the account of the pods; it needs ClusterRole system:auth-delegator.
func (p *Proxy) ServiceAccount() string { return cmp.Or(p.settings.ServiceAccountName, Account) }

// HasCookie tells whether the sidecar needs CookieSecret.
func (p *Proxy) HasCookie() bool { return p.kind == oauth }

// HasRules tells whether the sidecar needs RulesConfigMap.
func (p *Proxy) HasRules() bool { return p.kind == rbac }

// NeedsCertificate tells whether this program has to make TLSSecret.
func (p *Proxy) NeedsCertificate() bool { return !p.serviceCA }

// Rules are the data of RulesConfigMap: callers need the right to get Services of the namespace, as with the OAuth proxy.
func (p *Proxy) Rules() (map[string]string, error) {
	return rbacproxy.Config(rbacproxy.Attributes{APIVersion: "v1", Resource: "services", Verb: "get", Namespace: p.namespace})
}

// ServiceAnnotations ask the platform for the certificate of the sidecar, on the Service of the mesh.
func (p *Proxy) ServiceAnnotations() map[string]string {
	if !p.serviceCA {
		return nil
	}
	return map[string]string{servingCertAnnotation: TLSSecret}
}

// ServicePort leads to the sidecar.
func (p *Proxy) ServicePort() *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().WithName(PortName).WithPort(Port).WithTargetPort(intstr.FromString(PortName)).WithProtocol(corev1.ProtocolTCP)
}

// HostAliases lead the name in the certificate of the mesh to the pod itself, so that the sidecar can check whom it speaks to.
func (p *Proxy) HostAliases() []*corev1ac.HostAliasApplyConfiguration {
	if !p.settings.TLS.Enabled() {
		return nil
	}
	return []*corev1ac.HostAliasApplyConfiguration{corev1ac.HostAlias().WithIP(loopback).WithHostnames(p.meshName())}
}

// Volumes are those of the sidecar. No other container of the pod mounts them.
func (p *Proxy) Volumes() []*corev1ac.VolumeApplyConfiguration {
	volumes := []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName(VolumeTLS).WithSecret(corev1ac.SecretVolumeSource().WithSecretName(TLSSecret)),
	}
	if p.kind == rbac {
		volumes = append(volumes, corev1ac.Volume().WithName(VolumeRules).
			WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(RulesConfigMap)))
	}
	return volumes
}

// Container is the sidecar. An error means that a name is no text that JSON can hold.
func (p *Proxy) Container() (*corev1ac.ContainerApplyConfiguration, error) {
	if p.kind == rbac {
		return p.rbac(), nil
	}
	return p.oauth()
}

// arguments are those of the OAuth proxy.
func (p *Proxy) arguments() oauthproxy.Arguments {
	a := oauthproxy.Arguments{
		Port: Port, ServiceAccount: p.ServiceAccount(), Upstream: fmt.Sprintf("http://localhost:%d", p.settings.RESTProxy.Port),
		Review: oauthproxy.Review{Resource: "services", Namespace: p.namespace, Verb: "get"}, Extra: p.settings.AuthProxy.ExtraArgs,
	}
	if p.settings.TLS.Enabled() {
		a.Upstream = fmt.Sprintf("https://%s:%d", p.meshName(), p.settings.RESTProxy.Port)
		a.UpstreamCA = []string{meshTLSDir + "/" + corev1.TLSCertKey}
	}
	return a
}

func (p *Proxy) oauth() (*corev1ac.ContainerApplyConfiguration, error) {
	args, err := p.arguments().Args()
	if err != nil {
		return nil, err
	}
	c := corev1ac.Container().
		WithName(oauthproxy.ContainerName).
		WithImage(p.settings.AuthProxy.Image.Reference()).
		WithArgs(args...).
		WithPorts(corev1ac.ContainerPort().WithName(PortName).WithContainerPort(Port).WithProtocol(corev1.ProtocolTCP)).
		WithLivenessProbe(probe(30)).
		WithReadinessProbe(probe(5)).
		WithEnv(oauthproxy.CookieEnvVar(CookieSecret)).
		WithVolumeMounts(mount(VolumeTLS, oauthproxy.TLSDir).WithReadOnly(true)).
		WithResources(resources.Requirements(p.settings.AuthProxy.Resources.Requests, p.settings.AuthProxy.Resources.Limits)).
		WithSecurityContext(resources.SidecarSecurity())
	if p.settings.TLS.Enabled() {
		c.WithVolumeMounts(mount(meshTLSVolume, meshTLSDir).WithReadOnly(true))
	}
	return c, nil
}

// rbac has the port name of the other sidecar, by which the Service leads to it.
func (p *Proxy) rbac() *corev1ac.ContainerApplyConfiguration {
	own := p.settings.AuthProxy
	file := func(key string) rbacproxy.File {
		return rbacproxy.File{Secret: TLSSecret, Key: key, Volume: VolumeTLS, Dir: oauthproxy.TLSDir}
	}
	s := rbacproxy.Sidecar{
		Image: own.RBACImage.Reference(), Port: Port, UpstreamPort: p.settings.RESTProxy.Port, HealthPort: HealthPort, ConfigMap: RulesConfigMap,
		Certificate: file(corev1.TLSCertKey), Key: file(corev1.TLSPrivateKeyKey),
		TLS: own.TLS,
	}
	if p.settings.TLS.Enabled() {
		s.Upstream = &rbacproxy.Upstream{
			Host: p.meshName(), CA: meshTLSDir + "/" + corev1.TLSCertKey, Mount: mount(meshTLSVolume, meshTLSDir).WithReadOnly(true),
		}
	}
	if p.mutual() {
		s.Upstream.Certificate, s.Upstream.Key = s.Upstream.CA, meshTLSDir+"/"+corev1.TLSPrivateKeyKey
	}
	c := s.Container().WithArgs(own.ExtraArgs...).WithResources(resources.Requirements(own.Resources.Requests, own.Resources.Limits))
	c.Ports[0].WithName(PortName)
	return c
}

// probe asks the sidecar itself. Times are in seconds.
func probe(delay int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithHTTPGet(corev1ac.HTTPGetAction().WithPath(oauthproxy.HealthPath).WithPort(intstr.FromInt32(Port)).WithScheme(corev1.URISchemeHTTPS)).
		WithInitialDelaySeconds(delay).
		WithTimeoutSeconds(1).
		WithPeriodSeconds(5).
		WithSuccessThreshold(1).
		WithFailureThreshold(3)
}

func mount(volume, path string) *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName(volume).WithMountPath(path)
}
