// Package kserve installs the CRDs of KServe that ModelMesh needs in clusters without KServe. The CRDs belong to KServe: newer
// installed versions are not changed.
package kserve

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Relation is the relation of an installed CRD to the one of this repository.
type Relation string

// The relations.
const (
	// Missing means that the CRD is not installed.
	Missing Relation = "missing"
	// Same means that both have the same fields.
	Same Relation = "same"
	// Older means that the installed CRD lacks fields of the one of this repository and has all others.
	Older Relation = "older"
	// Newer means that the installed CRD has all fields of the one of this repository and more.
	Newer Relation = "newer"
	// Different means that each CRD has fields that the other lacks.
	Different Relation = "different"
)

// Compare compares the fields of the served versions of an installed CRD with those of this repository: other installers drop version marks in
// annotations. A nil live CRD is [Missing].
func Compare(live, ours *apiextensionsv1.CustomResourceDefinition) Relation {
	if live == nil {
		return Missing
	}
	has, wants := fields(live), fields(ours)
	more, less := isMissingEntries(wants, has), isMissingEntries(has, wants)
	switch {
	case !more && !less:
		return Same
	case less && !more:
		return Older
	case more && !less:
		return Newer
	default:
		return Different
	}
}

// isMissingEntries reports whether a lacks an entry of b.
func isMissingEntries(a, b map[string]string) bool {
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
