// Package served knows which kinds a cluster serves.
package served

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Kind is a kind that is served.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its plural name.
	Resource string
	// Namespaced tells whether its objects are in namespaces, Listable whether they can be listed.
	Namespaced, Listable bool
	// Preferred tells whether it is the version that the group prefers.
	Preferred bool
}

// GVR names the kind in requests.
func (k Kind) GVR() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Resource)
}

// Set is what a cluster serves.
type Set struct {
	kinds []Kind
	// Failed are group versions that could not be read, such as those of an aggregated API whose server is away.
	Failed []string
}

// Read asks the API server. An error means that nothing was learnt.
func Read(ctx context.Context, client discovery.DiscoveryInterface) (Set, error) {
	groups, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, discovery.ToDiscoveryInterfaceWithContext(client))
	var set Set
	if failed, is := discovery.GroupDiscoveryFailedErrorGroups(err); is {
		for version := range failed {
			set.Failed = append(set.Failed, version.String())
		}
		slices.Sort(set.Failed)
	} else if err != nil {
		return Set{}, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	preferred := map[string]bool{}
	for _, group := range groups {
		preferred[group.PreferredVersion.GroupVersion] = true
	}
	for _, list := range lists {
		set.add(list, preferred[list.GroupVersion])
	}
	return set, nil
}

// New returns a set of these kinds.
func New(kinds ...Kind) Set { return Set{kinds: kinds} }

func (s *Set) add(list *metav1.APIResourceList, preferred bool) {
	version, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return // no version that a request could name
	}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") { // else it is a part of another resource
			s.kinds = append(s.kinds, Kind{
				GroupVersionKind: version.WithKind(r.Kind), Resource: r.Name, Namespaced: r.Namespaced, Listable: slices.Contains(r.Verbs, "list"), Preferred: preferred,
			})
		}
	}
}

// Has reports whether a kind is served in that version.
func (s Set) Has(gvk schema.GroupVersionKind) bool {
	_, ok := s.Exact(gvk)
	return ok
}

// Kind returns a kind in the version that its group prefers, else in any.
func (s Set) Kind(group, kind string) (Kind, bool) {
	return best(s.kinds, func(k Kind) bool { return k.Group == group && k.Kind == kind })
}

// Exact returns a kind in a version.
func (s Set) Exact(gvk schema.GroupVersionKind) (Kind, bool) {
	return best(s.kinds, func(k Kind) bool { return k.GroupVersionKind == gvk })
}

// best is a wanted kind, in the preferred version if that is among them.
func best(kinds []Kind, wanted func(Kind) bool) (Kind, bool) {
	var found Kind
	for _, k := range kinds {
		if wanted(k) && (found.Resource == "" || k.Preferred && !found.Preferred) {
			found = k
		}
	}
	return found, found.Resource != ""
}

// Listable returns each kind that can be listed once, in the preferred version of its group, sorted.
func (s Set) Listable() []Kind {
	out := slices.DeleteFunc(slices.Clone(s.kinds), func(k Kind) bool {
		chosen, _ := best(s.kinds, func(other Kind) bool { return other.Listable && other.GroupKind() == k.GroupKind() })
		return k.GroupVersionKind != chosen.GroupVersionKind
	})
	slices.SortFunc(out, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}
