package main

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// cacheOptions says what is held in memory.
//
//   - Only kinds that an enabled component declares (component.CacheNeed): an informer starts with its first watch, and
//     a kind that no component declares is not watched.
//   - Children as metadata, and only those with our label; whole objects where a component declares that, for a status that
//     it reads (Deployments).
//   - Secrets and ConfigMaps of users as metadata; their content is read live when it moved, and never kept.
//   - Of the managed fields only our own entries, as a hash: they are the larger half of an object's metadata, and the
//     applier sees in them whether another client touched our fields.
func cacheOptions(enabled []row) cache.Options {
	owners := make([]string, 0, len(enabled))
	for _, r := range enabled {
		if r.FieldOwner != "" {
			owners = append(owners, r.FieldOwner)
		}
	}
	return component.CacheOptions(bare(enabled), apply.Transform(owners...))
}
