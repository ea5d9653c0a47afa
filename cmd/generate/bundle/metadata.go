package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// packageName is the name of the operator in catalogs.
const packageName = "odh-platform-operator"

// propertiesFile is metadata/properties.yaml: manifests of kinds that only some clusters serve, which OLM leaves out elsewhere.
func propertiesFile(objects []*unstructured.Unstructured) map[string]any {
	var optional []any
	for _, o := range objects {
		group := o.GroupVersionKind().Group
		if !slices.Contains([]string{"console.openshift.io", "monitoring.coreos.com"}, group) {
			continue
		}
		entry := map[string]any{"group": group, "kind": o.GetKind(), "name": o.GetName()}
		optional = append(optional, entry)
	}
	return map[string]any{"properties": []any{map[string]any{
		"type": "olm.manifests.optional", "value": map[string]any{"manifests": optional},
	}}}
}
