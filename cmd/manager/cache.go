package main

import (
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// cacheOptions returns the options of the manager's cache.
//
//   - Kinds are cached from their first watch, with the limits that enabled components declare (managercache.Need).
//   - Child objects are cached as metadata and only with the label of the operator, or as full objects if a component reads spec or status.
//   - Secrets and ConfigMaps of users are cached as metadata; their content is read live after a change.
//   - Managed fields are cached only for our field managers, as a hash by which the applier detects changes of other clients.
func cacheOptions(enabled []componentSpec) cache.Options {
	fieldOwners := make([]string, 0, len(enabled))
	var transforms []toolscache.TransformFunc
	for _, spec := range enabled {
		if spec.FieldOwner != "" {
			fieldOwners = append(fieldOwners, spec.FieldOwner)
		}
		if spec.Transform != nil {
			transforms = append(transforms, spec.Transform)
		}
	}
	return managercache.Options(cacheNeeds(enabled), reconciler.RecordRelist, append(transforms, apply.Transform(fieldOwners...))...)
}

// cacheNeeds returns the needs of the enabled components.
func cacheNeeds(enabled []componentSpec) []managercache.Need {
	var needs []managercache.Need
	for _, spec := range enabled {
		needs = append(needs, spec.Caches...)
	}
	return needs
}
