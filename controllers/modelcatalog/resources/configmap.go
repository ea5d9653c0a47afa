package resources

import (
	_ "embed" // the sources that come with the catalog

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
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

func defaultSourcesMap(c *aihubv1alpha1.Catalog) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(DefaultSources, c.Namespace).WithLabels(Labels(Name)).
		WithData(map[string]string{SourcesKey: DefaultSourcesText})
}

// UserSourcesMap is the ConfigMap of one of the UserSources.
func UserSourcesMap(c *aihubv1alpha1.Catalog, name, content string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(name, c.Namespace).WithLabels(Labels(Name)).
		WithData(map[string]string{SourcesKey: content})
}
