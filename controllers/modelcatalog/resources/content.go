package resources

import (
	"cmp"
	_ "embed" // for default_sources.yaml
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"go.yaml.in/yaml/v3"
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

// UserSources are the user-editable ConfigMaps, in the order in which the server reads them, with their initial content and their volume.
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

// ParseSources returns the only YAML document of sources, which must be a map, or nil if the text is empty or null.
func ParseSources(text string) (*yaml.Node, error) {
	document, decoder := &yaml.Node{}, yaml.NewDecoder(strings.NewReader(text))
	switch err := decoder.Decode(document); {
	case errors.Is(err, io.EOF), err == nil && document.Content[0].Kind == yaml.ScalarNode && document.Content[0].Tag == "!!null":
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the key is not valid YAML: %w", err)
	case document.Content[0].Kind != yaml.MappingNode:
		return nil, errors.New("the key must be a map of sections such as catalogs")
	case !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF):
		return nil, errors.New("the key contains more than one YAML document: keep one of them")
	}
	return document, nil
}

// MapValue returns the value of a key in a map, or nil.
func MapValue(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// imageVersion matches a digest or a tag.
var imageVersion = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9._-]{0,127})$`)

// CheckImages returns an error for the first image version that is neither a digest nor a tag. The CRD of an earlier release does not check
// versions.
func CheckImages(c *aihubv1alpha1.Catalog) error {
	for _, image := range []struct{ field, version string }{
		{"spec.catalogDataImage", c.Spec.CatalogDataImage}, {"spec.benchmarkDataImage", c.Spec.BenchmarkDataImage},
	} {
		if version := strings.TrimSpace(image.version); version != "" && !imageVersion.MatchString(version) {
			return fmt.Errorf("%s is %q; it must be the digest of an image (sha256: and 64 of 0-9a-f) or a tag such as v1.2, without registry and repository", image.field, version)
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

// authProxy returns spec.authProxy, with empty fields set from the deprecated fields of spec.proxy.
func authProxy(c *aihubv1alpha1.Catalog) aihubv1alpha1.CatalogAuthProxy {
	current, deprecated := ptr.Deref(c.Spec.AuthProxy, aihubv1alpha1.CatalogAuthProxy{}), ptr.Deref(c.Spec.Proxy, aihubv1alpha1.CatalogProxy{})
	return aihubv1alpha1.CatalogAuthProxy{
		Mode:                  cmp.Or(current.Mode, deprecated.Mode),
		CertificateSecretName: cmp.Or(current.CertificateSecretName, deprecated.CertificateSecretName),
	}
}

// EgressProxy contains the proxy environment variables of the server. Empty variables are not set.
type EgressProxy struct {
	HTTP, HTTPS, NoProxy string
}

// ClusterProxy returns the egress proxy from the OpenShift Proxy of the cluster. Fields that are empty in the status come from the spec.
// The result is empty if object is nil or cannot be decoded.
func ClusterProxy(object *unstructured.Unstructured) EgressProxy {
	if object == nil {
		return EgressProxy{}
	}
	proxy, err := resources.Decode[configv1.Proxy](object)
	if err != nil {
		return EgressProxy{}
	}
	return EgressProxy{
		HTTP:    cmp.Or(proxy.Status.HTTPProxy, proxy.Spec.HTTPProxy),
		HTTPS:   cmp.Or(proxy.Status.HTTPSProxy, proxy.Spec.HTTPSProxy),
		NoProxy: cmp.Or(proxy.Status.NoProxy, proxy.Spec.NoProxy),
	}
}

// HasEgressProxy reports whether the spec sets an egress proxy, or disables it with {}. Deprecated fields in spec.proxy do not count.
func HasEgressProxy(c *aihubv1alpha1.Catalog) bool {
	p := c.Spec.Proxy
	return p != nil && (p.HTTPProxy != nil || p.HTTPSProxy != nil || p.NoProxy != nil || *p == aihubv1alpha1.CatalogProxy{})
}

// proxyEnv returns the environment variables of the egress proxy.
func proxyEnv(c *aihubv1alpha1.Catalog, in Inputs) []*corev1ac.EnvVarApplyConfiguration {
	proxy := in.EgressProxy
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
