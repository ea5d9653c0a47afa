package capability

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// served is what one reading of discovery says about the groups that matter.
type served struct {
	// kinds holds, per group version, the plural name of each kind. A version that is listed but could not be
	// read is absent here and present in failed.
	kinds  map[schema.GroupVersion]map[string]string
	failed map[schema.GroupVersion]error
}

// read asks the API server which kinds of the given groups it serves. An error means that nothing was learnt;
// failures of single group versions are part of the answer.
func read(ctx context.Context, client discovery.DiscoveryInterfaceWithContext, groups map[string]bool) (served, error) {
	out := served{kinds: map[schema.GroupVersion]map[string]string{}, failed: map[schema.GroupVersion]error{}}
	list, resources, err := discovery.ServerGroupsAndResourcesWithContext(ctx, client)
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return served{}, fmt.Errorf("reading discovery: %w", err)
	}
	for _, r := range resources {
		if gv, err := schema.ParseGroupVersion(r.GroupVersion); err == nil && groups[gv.Group] {
			out.add(gv, r)
		}
	}
	for _, group := range list {
		if groups[group.Name] {
			out.addFailed(group, failed)
		}
	}
	return out, nil
}

// addFailed notes the versions of a group that are listed and could not be described.
func (s served) addFailed(group *metav1.APIGroup, failed map[schema.GroupVersion]error) {
	for _, version := range group.Versions {
		gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
		cause := failed[gv]
		if _, described := s.kinds[gv]; described || apierrors.IsNotFound(cause) { // the last disappeared between two requests
			continue
		}
		if cause == nil { // the aggregated document lists a version without its resources while it is being collected
			cause = errors.New("its resources are not known yet")
		}
		s.failed[gv] = fmt.Errorf("reading the resources of %s: %w", gv, cause)
	}
}

func (s served) add(gv schema.GroupVersion, list *metav1.APIResourceList) {
	plurals := map[string]string{}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") { // subresources carry the kind of what they return
			plurals[r.Kind] = r.Name
		}
	}
	s.kinds[gv] = plurals
}

// plural returns the resource name of a kind and whether it is served.
func (s served) plural(gvk schema.GroupVersionKind) (string, bool) {
	name, ok := s.kinds[gvk.GroupVersion()][gvk.Kind]
	return name, ok
}

// lists reports whether any version of the group serves the resource, or cannot be read.
func (s served) lists(group, plural string) bool {
	for gv := range s.failed {
		if gv.Group == group {
			return true
		}
	}
	for gv, plurals := range s.kinds {
		if gv.Group == group && slices.Contains(slices.Collect(maps.Values(plurals)), plural) {
			return true
		}
	}
	return false
}
