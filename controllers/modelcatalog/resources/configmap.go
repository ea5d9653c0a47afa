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

// UserSources are the ConfigMaps that are made once and belong to users from then on, with what they hold at first.
var UserSources = []struct{ Name, Content string }{
	{ModelSources, "catalogs: []\n"},
	{McpSources, "mcp_catalogs: []\n"},
	{AgentSources, "agent_catalogs: []\n"},
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
