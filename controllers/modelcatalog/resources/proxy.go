package resources

import (
	"cmp"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// authProxy is the proxy that authenticates clients. Older releases had it in spec.proxy, which is still read.
func authProxy(c *aihubv1alpha1.Catalog) aihubv1alpha1.CatalogAuthProxy {
	now, before := ptr.Deref(c.Spec.AuthProxy, aihubv1alpha1.CatalogAuthProxy{}), ptr.Deref(c.Spec.Proxy, aihubv1alpha1.CatalogProxy{})
	return aihubv1alpha1.CatalogAuthProxy{
		Mode:                  cmp.Or(now.Mode, before.Mode),
		CertificateSecretName: cmp.Or(now.CertificateSecretName, before.CertificateSecretName),
	}
}

// EgressProxy is the way out of the cluster. What is empty is not there.
type EgressProxy struct {
	HTTP, HTTPS, NoProxy string
}

// ClusterProxy reads the proxy of an OpenShift cluster: what its operator put in force, and else what was asked for. There is none
// without the object, or in one of another schema.
func ClusterProxy(object *unstructured.Unstructured) EgressProxy {
	if object == nil {
		return EgressProxy{}
	}
	p, err := resources.Decode[configv1.Proxy](object)
	if err != nil {
		return EgressProxy{}
	}
	return EgressProxy{
		HTTP:    cmp.Or(p.Status.HTTPProxy, p.Spec.HTTPProxy),
		HTTPS:   cmp.Or(p.Status.HTTPSProxy, p.Spec.HTTPSProxy),
		NoProxy: cmp.Or(p.Status.NoProxy, p.Spec.NoProxy),
	}
}

// ChoosesProxy reports whether the spec says how the server leaves the cluster, be it {} for directly. What older releases kept in
// spec.proxy says nothing about that.
func ChoosesProxy(c *aihubv1alpha1.Catalog) bool {
	p := c.Spec.Proxy
	return p != nil && (p.HTTPProxy != nil || p.HTTPSProxy != nil || p.NoProxy != nil || *p == aihubv1alpha1.CatalogProxy{})
}

// proxyEnv leads requests of the server to a proxy.
func proxyEnv(c *aihubv1alpha1.Catalog, in Inputs) []*corev1ac.EnvVarApplyConfiguration {
	proxy := in.Proxy
	if ChoosesProxy(c) {
		p := c.Spec.Proxy
		proxy = EgressProxy{ptr.Deref(p.HTTPProxy, ""), ptr.Deref(p.HTTPSProxy, ""), ptr.Deref(p.NoProxy, "")}
	}
	var env []*corev1ac.EnvVarApplyConfiguration
	for _, v := range []struct{ name, value string }{{"HTTP_PROXY", proxy.HTTP}, {"HTTPS_PROXY", proxy.HTTPS}, {"NO_PROXY", proxy.NoProxy}} {
		if v.value != "" {
			env = append(env, corev1ac.EnvVar().WithName(v.name).WithValue(v.value))
		}
	}
	return env
}
