package authproxy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
)

func (p *Proxy) oauth() (*corev1ac.ContainerApplyConfiguration, error) {
	args, err := p.arguments().All()
	if err != nil {
		return nil, err
	}
	c := guarded(p.settings.AuthProxy.Image.Reference(), args).
		WithEnv(oauthproxy.CookieVariable(CookieSecret)).
		WithVolumeMounts(mount(VolumeTLS, oauthproxy.TLSDir).WithReadOnly(true)).
		WithResources(resourcesOf(p.settings.AuthProxy.Resources)).
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
	}
	if p.settings.TLS.Enabled() {
		s.Upstream = &rbacproxy.Upstream{
			Host: p.meshName(), CA: meshTLSDir + "/" + corev1.TLSCertKey, Mount: mount(meshTLSVolume, meshTLSDir).WithReadOnly(true),
		}
	}
	if p.mutual() {
		s.Upstream.Certificate, s.Upstream.Key = s.Upstream.CA, meshTLSDir+"/"+corev1.TLSPrivateKeyKey
	}
	c := s.Container().WithArgs(own.ExtraArgs...).WithResources(resourcesOf(own.Resources))
	c.Ports[0].WithName(PortName)
	return c
}

// original leaves nothing out and mends nothing: the quotes around the account, the constant key of the cookies, the port, and
// the expression that never matches.
func (p *Proxy) original() *corev1ac.ContainerApplyConfiguration {
	review := fmt.Sprintf(`{"namespace": %q, "resource": "services", "verb": "get"}`, p.namespace)
	amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")}
	return guarded(p.settings.AuthProxy.Image.Reference(), []string{
		fmt.Sprintf("--https-address=:%d", Port),
		"--provider=openshift",
		fmt.Sprintf("--openshift-service-account=%q", p.settings.ServiceAccountName),
		"--upstream=http://localhost:8008",
		"--tls-cert=" + oauthproxy.TLSDir + "/tls.crt",
		"--tls-key=" + oauthproxy.TLSDir + "/tls.key",
		"--cookie-secret=SECRET",
		`--openshift-delegate-urls={"/": ` + review + "}",
		"--openshift-sar=" + review,
		"--skip-auth-regex='(^/metrics|^/apis/v1beta1/healthz)'",
	}).
		WithVolumeMounts(mount(VolumeTLS, oauthproxy.TLSDir)).
		WithResources(resourcesOf(corev1.ResourceRequirements{Requests: amount, Limits: amount}))
}

// guarded is what both forms of the OAuth proxy have in common.
func guarded(image string, args []string) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(oauthproxy.ContainerName).
		WithImage(image).
		WithArgs(args...).
		WithPorts(corev1ac.ContainerPort().WithName(PortName).WithContainerPort(Port).WithProtocol(corev1.ProtocolTCP)).
		WithLivenessProbe(probe(30)).
		WithReadinessProbe(probe(5))
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

func resourcesOf(r corev1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	return corev1ac.ResourceRequirements().WithRequests(r.Requests).WithLimits(r.Limits)
}
