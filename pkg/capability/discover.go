package capability

import (
	"context"
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
	var (
		list  *metav1.APIGroupList
		known map[schema.GroupVersion]*metav1.APIResourceList
		stale map[schema.GroupVersion]error
		err   error
	)
	if aggregated, ok := client.(discovery.AggregatedDiscoveryInterfaceWithContext); ok {
		list, known, stale, err = aggregated.GroupsAndMaybeResourcesWithContext(ctx)
	} else {
		list, err = client.ServerGroupsWithContext(ctx)
	}
	if err != nil {
		return served{}, fmt.Errorf("reading the API groups: %w", err)
	}
	for gv, cause := range stale {
		if groups[gv.Group] {
			out.failed[gv] = cause
		}
	}
	for _, gv := range versionsOf(list, groups) {
		if _, bad := out.failed[gv]; bad {
			continue
		}
		if resources, ok := known[gv]; ok {
			out.add(gv, resources)
			continue
		}
		if known != nil {
			// The aggregated document lists the version without its resources while it is being collected.
			out.failed[gv] = fmt.Errorf("resources of %s are not known yet", gv)
			continue
		}
		resources, err := client.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
		switch {
		case apierrors.IsNotFound(err): // it went away between the two requests
		case err != nil:
			out.failed[gv] = fmt.Errorf("reading the resources of %s: %w", gv, err)
		default:
			out.add(gv, resources)
		}
	}
	return out, nil
}

func versionsOf(list *metav1.APIGroupList, groups map[string]bool) []schema.GroupVersion {
	var out []schema.GroupVersion
	if list == nil {
		return nil
	}
	for _, group := range list.Groups {
		if !groups[group.Name] {
			continue
		}
		for _, version := range group.Versions {
			out = append(out, schema.GroupVersion{Group: group.Name, Version: version.Version})
		}
	}
	return out
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
