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

// DefaultSourcesText is the content of the default sources.
//
//go:embed default_sources.yaml
var DefaultSourcesText string

// UserSources are the ConfigMaps that are created once and then belong to users, in reading order, with their initial content and the
// volume that mounts them.
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

// UserSourcesConfigMap returns the ConfigMap of one of UserSources.
func UserSourcesConfigMap(c *aihubv1alpha1.Catalog, name, content string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(name, c.Namespace).WithLabels(Labels(Name)).
		WithData(map[string]string{SourcesKey: content})
}

// imageVersion matches a digest or a tag.
var imageVersion = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9._-]{0,127})$`)

// CheckImages returns an error for a version that is neither digest nor tag, in case the installed CRD is of another release.
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

// withVersion replaces the digest or tag of an image, unless version is empty.
func withVersion(image, version string) string {
	version = strings.TrimSpace(version)
	if version == "" {
		return image
	}
	repository, _, _ := strings.Cut(image, "@")
	if tag := strings.LastIndex(repository, ":"); tag > strings.LastIndex(repository, "/") { // a colon before the last slash separates a port
		repository = repository[:tag]
	}
	if strings.Contains(version, ":") {
		return repository + "@" + version
	}
	return repository + ":" + version
}

// authProxy returns the authenticating proxy of the spec, or of the deprecated field spec.proxy.
func authProxy(c *aihubv1alpha1.Catalog) aihubv1alpha1.CatalogAuthProxy {
	current, deprecated := ptr.Deref(c.Spec.AuthProxy, aihubv1alpha1.CatalogAuthProxy{}), ptr.Deref(c.Spec.Proxy, aihubv1alpha1.CatalogProxy{})
	return aihubv1alpha1.CatalogAuthProxy{
		Mode:                  cmp.Or(current.Mode, deprecated.Mode),
		CertificateSecretName: cmp.Or(current.CertificateSecretName, deprecated.CertificateSecretName),
	}
}

// EgressProxy is the HTTP proxy for egress of the server. Empty fields are unset.
type EgressProxy struct {
	HTTP, HTTPS, NoProxy string
}

// ClusterProxy returns the egress proxy of an OpenShift cluster from the status of its Proxy, or else from the spec. It returns an empty
// EgressProxy if object is nil or cannot be decoded.
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

// HasEgressProxy reports whether the spec sets an egress proxy, or disables it with {}. Deprecated fields in spec.proxy do not count.
func HasEgressProxy(c *aihubv1alpha1.Catalog) bool {
	p := c.Spec.Proxy
	return p != nil && (p.HTTPProxy != nil || p.HTTPSProxy != nil || p.NoProxy != nil || *p == aihubv1alpha1.CatalogProxy{})
}

// proxyEnv returns the variables of the egress proxy.
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
