package resources

import (
	"cmp"
	_ "embed" // the sources that come with the catalog
	"fmt"
	"regexp"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// DefaultSourcesText is what the default sources hold at first.
//
//go:embed default_sources.yaml
var DefaultSourcesText string

// UserSources are the ConfigMaps that are made once and belong to users from then on, in the order in which the server reads them:
// with what they hold at first, and the volume in which they are mounted.
var UserSources = []struct{ Name, Content, volume string }{
	{ModelSources, "catalogs: []\n", "user-model-sources"},
	{McpSources, "mcp_catalogs: []\n", "user-mcp-sources"},
	{AgentSources, "agent_catalogs: []\n", "user-agent-sources"},
	{RuntimeSources, "serving_runtime_catalogs: []\n", "user-serving-runtime-sources"},
}

func defaultSourcesConfigMap(c *aihubv1alpha1.Catalog) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(DefaultSources, c.Namespace).WithLabels(Labels(Name)).
		WithData(map[string]string{SourcesKey: DefaultSourcesText})
}

// UserSourcesMap is the ConfigMap of one of the UserSources.
func UserSourcesConfigMap(c *aihubv1alpha1.Catalog, name, content string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(name, c.Namespace).WithLabels(Labels(Name)).
		WithData(map[string]string{SourcesKey: content})
}

// imageVersion is what may follow the repository of an image: a digest or a tag.
var imageVersion = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9._-]{0,127})$`)

// CheckImages refuses what is neither digest nor tag. The schema does so too; that of another release may not.
func CheckImages(c *aihubv1alpha1.Catalog) error {
	for field, version := range map[string]string{
		"spec.catalogDataImage": c.Spec.CatalogDataImage, "spec.benchmarkDataImage": c.Spec.BenchmarkDataImage,
	} {
		if version = strings.TrimSpace(version); version != "" && !imageVersion.MatchString(version) {
			return fmt.Errorf("%s is %q; it must be the digest of an image (sha256: and 64 of 0-9a-f) or a tag such as v1.2, without registry and repository", field, version)
		}
	}
	return nil
}

// inVersion puts a digest or a tag in place of those that an image has. Without one the image stays as it is.
func withVersion(image, version string) string {
	version = strings.TrimSpace(version)
	if version == "" {
		return image
	}
	repository, _, _ := strings.Cut(image, "@")
	if tag := strings.LastIndex(repository, ":"); tag > strings.LastIndex(repository, "/") { // else it is the port of a registry
		repository = repository[:tag]
	}
	if strings.Contains(version, ":") {
		return repository + "@" + version
	}
	return repository + ":" + version
}

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
func HasEgressProxy(c *aihubv1alpha1.Catalog) bool {
	p := c.Spec.Proxy
	return p != nil && (p.HTTPProxy != nil || p.HTTPSProxy != nil || p.NoProxy != nil || *p == aihubv1alpha1.CatalogProxy{})
}

// proxyEnv leads requests of the server to a proxy.
func proxyEnv(c *aihubv1alpha1.Catalog, in Inputs) []*corev1ac.EnvVarApplyConfiguration {
	proxy := in.Proxy
	if HasEgressProxy(c) {
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
