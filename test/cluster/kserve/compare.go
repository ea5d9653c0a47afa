// Package kserve installs the CRDs of KServe that ModelMesh needs in clusters without KServe. The CRDs belong to KServe: newer
// installed versions are not changed.
package kserve

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Relation is the relation of an installed CRD to that of this repository.
type Relation string

// The relations.
const (
	// Missing means that the CRD is not installed.
	Missing Relation = "missing"
	// Same means that both have the same fields.
	Same Relation = "same"
	// Older means that the installed CRD lacks fields of this repository's CRD, and has no other fields.
	Older Relation = "older"
	// Newer means that the installed CRD has all fields of this repository's CRD, and others.
	Newer Relation = "newer"
	// Different means that each CRD has fields that the other lacks.
	Different Relation = "different"
)

// Compare compares the fields of the served versions of an installed CRD with those of this repository's CRD. A field of another type
// counts as a missing field. Compare does not use annotations with versions, because other installers drop them. A nil live CRD is
// [Missing].
func Compare(live, ours *apiextensionsv1.CustomResourceDefinition) Relation {
	if live == nil {
		return Missing
	}
	installed, desired := fields(live), fields(ours)
	hasMore, hasLess := lacksEntries(desired, installed), lacksEntries(installed, desired)
	switch {
	case !hasMore && !hasLess:
		return Same
	case hasLess && !hasMore:
		return Older
	case hasMore && !hasLess:
		return Newer
	default:
		return Different
	}
}

// lacksEntries reports whether a lacks an entry of b.
func lacksEntries(a, b map[string]string) bool {
	for path, kind := range b {
		if a[path] != kind {
			return true
		}
	}
	return false
}

// fields maps the path of each field of the served versions to its type.
func fields(crd *apiextensionsv1.CustomResourceDefinition) map[string]string {
	found := map[string]string{}
	for _, version := range crd.Spec.Versions {
		if version.Served && version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
			collect(found, version.Name, version.Schema.OpenAPIV3Schema)
		}
	}
	return found
}

func collect(into map[string]string, path string, schema *apiextensionsv1.JSONSchemaProps) {
	into[path] = schema.Type
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		child := schema.Properties[name]
		collect(into, path+"."+name, &child)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		collect(into, path+"[]", schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		collect(into, path+"{}", schema.AdditionalProperties.Schema)
	}
}
