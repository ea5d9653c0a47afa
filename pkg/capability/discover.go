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

// served is what one reading of discovery says about the groups that matter.
type discoveryResult struct {
	// plurals holds the plural name of each kind.
	plurals map[schema.GroupVersionKind]string
	// failed holds the versions that are listed and could not be described.
	failed map[schema.GroupVersion]error
}

// errUndescribed is for a version that the aggregated document lists without its resources while it is being collected.
var errUndescribed = errors.New("its resources are not known yet")

// read asks the API server which kinds of the given groups it serves. An error means that nothing was learnt;
// failures of single group versions are part of the answer.
func readDiscovery(ctx context.Context, client discovery.DiscoveryInterfaceWithContext, groups map[string]bool) (discoveryResult, error) {
	list, resources, err := discovery.ServerGroupsAndResourcesWithContext(ctx, client)
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return discoveryResult{}, fmt.Errorf("reading discovery: %w", err)
	}
	out := discoveryResult{plurals: map[schema.GroupVersionKind]string{}, failed: undescribedVersions(list, groups, failed)}
	for _, described := range resources {
		gv, err := schema.ParseGroupVersion(described.GroupVersion)
		if err != nil || !groups[gv.Group] {
			continue
		}
		delete(out.failed, gv)
		for _, r := range described.APIResources {
			if !strings.Contains(r.Name, "/") { // subresources carry the kind of what they return
				out.plurals[gv.WithKind(r.Kind)] = r.Name
			}
		}
	}
	return out, nil
}

// announced are the listed versions of the groups, with why they could not be described as far as that is known.
func undescribedVersions(list []*metav1.APIGroup, groups map[string]bool, failed map[schema.GroupVersion]error) map[schema.GroupVersion]error {
	out := map[schema.GroupVersion]error{}
	for _, group := range list {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			if cause := failed[gv]; groups[gv.Group] && !apierrors.IsNotFound(cause) { // those disappeared between two requests
				out[gv] = fmt.Errorf("reading the resources of %s: %w", gv, cmp.Or(cause, errUndescribed))
			}
		}
	}
	return out
}

// lists reports whether any version of the group serves the resource, or cannot be read.
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
