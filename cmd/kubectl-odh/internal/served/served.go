// Package served knows which kinds a cluster serves, and finds the one that a user means by a word.
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

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Kind is a kind that is served.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its plural name, Singular its other one, and Short are the abbreviations.
	Resource, Singular string
	Short              []string
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
		if strings.Contains(r.Name, "/") {
			continue // a part of another resource
		}
		s.kinds = append(s.kinds, Kind{
			GroupVersionKind: version.WithKind(r.Kind), Resource: r.Name, Singular: cmp.Or(r.SingularName, strings.ToLower(r.Kind)),
			Short: r.ShortNames, Namespaced: r.Namespaced, Listable: slices.Contains(r.Verbs, "list"), Preferred: preferred,
		})
	}
}

// Has reports whether a kind is served in that version.
func (s Set) Has(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(s.kinds, func(k Kind) bool { return k.GroupVersionKind == gvk })
}

// Kind returns a kind in the version that its group prefers, else in any.
func (s Set) Kind(group, kind string) (Kind, bool) {
	return best(s.kinds, func(k Kind) bool { return k.Group == group && k.Kind == kind })
}

// Exact returns a kind in a version.
func (s Set) Exact(gvk schema.GroupVersionKind) (Kind, bool) {
	return best(s.kinds, func(k Kind) bool { return k.GroupVersionKind == gvk })
}

func best(kinds []Kind, wanted func(Kind) bool) (Kind, bool) {
	var found []Kind
	for _, k := range kinds {
		if wanted(k) {
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		return Kind{}, false
	}
	return slices.MinFunc(found, func(a, b Kind) int { return cmp.Compare(later(a), later(b)) }), true
}

// later sorts versions that are not preferred behind those that are.
func later(k Kind) int {
	if k.Preferred {
		return 0
	}
	return 1
}

// Listable returns each kind that can be listed once, in the preferred version of its group, sorted.
func (s Set) Listable() []Kind {
	seen := map[schema.GroupKind]Kind{}
	for _, k := range s.kinds {
		if old, known := seen[k.GroupKind()]; k.Listable && (!known || !old.Preferred && k.Preferred) {
			seen[k.GroupKind()] = k
		}
	}
	var out []Kind
	for _, k := range seen {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// Find returns the kind that a word means, as kubectl does: its name, the singular or plural one, an abbreviation, any of them with
// ".group" behind. Of several groups that have the word, the first one that ours prefers counts.
func (s Set) Find(word string, ours func(schema.GroupKind) bool) (Kind, error) {
	word = strings.ToLower(word)
	name, group, qualified := strings.Cut(word, ".")
	matches := func(k Kind) bool {
		if qualified && k.Group != group && k.Version+"."+k.Group != group {
			return false
		}
		return k.means(name)
	}
	if found, ok := best(s.kinds, func(k Kind) bool { return matches(k) && ours(k.GroupKind()) }); ok {
		return found, nil
	}
	if found, ok := best(s.kinds, matches); ok {
		return found, nil
	}
	return Kind{}, fmt.Errorf("the cluster serves no kind %q%s", word, s.similar(name, ours))
}

func (k Kind) means(name string) bool {
	return name == k.Resource || name == k.Singular || name == strings.ToLower(k.Kind) || slices.Contains(k.Short, name)
}

// similar proposes one of our kinds that somebody may have meant.
func (s Set) similar(name string, ours func(schema.GroupKind) bool) string {
	for _, k := range s.kinds {
		if ours(k.GroupKind()) && names.Edits(name, k.Singular) <= 2 {
			return fmt.Sprintf("; did you mean %q?", k.Singular)
		}
	}
	return "; kubectl api-resources lists all"
}
