package main

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// cacheOptions returns the options of the manager's cache.
//
//   - Kinds are cached from their first watch, with the limits that enabled components declare (component.CacheNeed).
//   - Child objects are cached as metadata and only with the label of the operator, or as full objects if a component reads spec or status.
//   - Secrets and ConfigMaps of users are cached as metadata; their content is read live after a change.
//   - Managed fields are cached only for our field managers, as a hash by which the applier detects changes of other clients.
func cacheOptions(enabled []componentSpec) cache.Options {
	fieldOwners := make([]string, 0, len(enabled))
	for _, spec := range enabled {
		if spec.FieldOwner != "" {
			fieldOwners = append(fieldOwners, spec.FieldOwner)
		}
	}
	return component.CacheOptions(componentsOf(enabled), apply.Transform(fieldOwners...))
}
