package capability

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
)

// discoveryResult is the result of a discovery call for the relevant groups.
type discoveryResult struct {
	// plurals holds the plural name of each kind.
	plurals map[schema.GroupVersionKind]string
	// failed holds the versions that are listed without their resources: these could not be read, or are not collected yet.
	failed sets.Set[schema.GroupVersion]
}

// readDiscovery returns the served kinds of the given groups. Failures of single versions are part of the result.
func readDiscovery(ctx context.Context, client discovery.DiscoveryInterfaceWithContext, groups map[string]bool) (discoveryResult, error) {
	list, resources, err := discovery.ServerGroupsAndResourcesWithContext(ctx, client)
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return discoveryResult{}, fmt.Errorf("reading discovery: %w", err)
	}
	result := discoveryResult{plurals: map[schema.GroupVersionKind]string{}, failed: sets.New[schema.GroupVersion]()}
	for _, group := range list {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			if groups[gv.Group] && !apierrors.IsNotFound(failed[gv]) { // NotFound: removed between two requests
				result.failed.Insert(gv)
			}
		}
	}
	for _, resourceList := range resources {
		if gv, err := schema.ParseGroupVersion(resourceList.GroupVersion); err == nil && groups[gv.Group] {
			result.add(gv, resourceList.APIResources)
		}
	}
	return result, nil
}

// add adds the resources of a version that was read.
func (s discoveryResult) add(gv schema.GroupVersion, resources []metav1.APIResource) {
	s.failed.Delete(gv)
	for _, r := range resources {
		if !strings.Contains(r.Name, "/") { // the kind of a subresource is that of its response
			s.plurals[gv.WithKind(r.Kind)] = r.Name
		}
	}
}

// mayServe reports whether any version of the group serves the resource, or could not be read.
func (s discoveryResult) mayServe(resource schema.GroupResource) bool {
	for gv := range s.failed {
		if gv.Group == resource.Group {
			return true
		}
	}
	for kind, plural := range s.plurals {
		if kind.Group == resource.Group && plural == resource.Resource {
			return true
		}
	}
	return false
}
