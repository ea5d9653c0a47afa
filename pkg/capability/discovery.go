package capability

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// discoveryResult is the result of a discovery call for the relevant groups.
type discoveryResult struct {
	// plurals holds the plural name of each kind.
	plurals map[schema.GroupVersionKind]string
	// failed holds the versions that are listed but whose resources could not be read.
	failed map[schema.GroupVersion]error
}

// errUndescribed is used for a version that the aggregated document lists before it has collected the resources.
var errUndescribed = errors.New("its resources are not known yet")

// readDiscovery returns the served kinds of the given groups. Failures of single versions are part of the result.
func readDiscovery(ctx context.Context, client discovery.DiscoveryInterfaceWithContext, groups map[string]bool) (discoveryResult, error) {
	list, resources, err := discovery.ServerGroupsAndResourcesWithContext(ctx, client)
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return discoveryResult{}, fmt.Errorf("reading discovery: %w", err)
	}
	result := discoveryResult{plurals: map[schema.GroupVersionKind]string{}, failed: undescribedVersions(list, groups, failed)}
	for _, resourceList := range resources {
		gv, err := schema.ParseGroupVersion(resourceList.GroupVersion)
		if err != nil || !groups[gv.Group] {
			continue
		}
		delete(result.failed, gv)
		for _, r := range resourceList.APIResources {
			if !strings.Contains(r.Name, "/") { // the kind of a subresource is that of its response
				result.plurals[gv.WithKind(r.Kind)] = r.Name
			}
		}
	}
	return result, nil
}

// undescribedVersions returns the listed versions of the groups whose resources could not be read, with the cause as far as it is known.
func undescribedVersions(list []*metav1.APIGroup, groups map[string]bool, failed map[schema.GroupVersion]error) map[schema.GroupVersion]error {
	undescribed := map[schema.GroupVersion]error{}
	for _, group := range list {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			if cause := failed[gv]; groups[gv.Group] && !apierrors.IsNotFound(cause) { // NotFound: removed between two requests
				undescribed[gv] = fmt.Errorf("reading the resources of %s: %w", gv, cmp.Or(cause, errUndescribed))
			}
		}
	}
	return undescribed
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
