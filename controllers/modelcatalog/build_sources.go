package modelcatalog

import (
	_ "embed" // the sources that come with the catalog

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
)

//go:embed default_sources.yaml
var defaultSourcesText string

// userSources are the ConfigMaps that are made once and belong to users from then on, with what they hold at first.
var userSources = []struct{ name, content string }{
	{modelSources, "catalogs: []\n"},
	{mcpSources, "mcp_catalogs: []\n"},
	{agentSources, "agent_catalogs: []\n"},
}

func defaultSourcesMap(c *aihubv1alpha1.Catalog) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(defaultSources, c.Namespace).WithLabels(labels(baseName)).
		WithData(map[string]string{sourcesKey: defaultSourcesText})
}

func userSourcesMap(c *aihubv1alpha1.Catalog, name, content string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(name, c.Namespace).WithLabels(labels(baseName)).
		WithData(map[string]string{sourcesKey: content})
}
