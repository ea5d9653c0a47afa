package capability

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is an immutable snapshot of the optional kinds that are served, and of the neighbor that decides about Ray clusters. The zero
// value is the empty set.
type Set struct {
	kinds           map[schema.GroupVersionKind]struct{}
	platformKubeRay bool
}

// NewSet returns the set of exactly these kinds.
func NewSet(kinds ...schema.GroupVersionKind) Set {
	s := Set{kinds: make(map[schema.GroupVersionKind]struct{}, len(kinds))}
	for _, k := range kinds {
		s.kinds[k] = struct{}{}
	}
	return s
}

// Has reports whether the kind is served in that version.
func (s Set) Has(gvk schema.GroupVersionKind) bool {
	_, ok := s.kinds[gvk]
	return ok
}

// HasAll reports whether every one of the kinds is served; it is true for no kinds.
func (s Set) HasAll(kinds ...schema.GroupVersionKind) bool {
	return !slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return !s.Has(k) })
}

// OpenShift reports whether the cluster is OpenShift: its configuration API together with Routes. Single features
// ask for their own kind instead, since plain clusters may carry some of them.
func (s Set) OpenShift() bool { return s.Has(OpenShiftIngress) && s.Has(Route) }

// OAuth reports whether OpenShift has its OAuth server: with an external OIDC provider the server goes, and with it the API of users.
func (s Set) OAuth() bool { return s.OpenShift() && s.Has(UserGroup) }

// PlatformKubeRay reports whether KubeRay is the one of Open Data Hub or OpenShift AI since 3.0.
func (s Set) PlatformKubeRay() bool { return s.platformKubeRay }

// KubeRaySecures reports whether KubeRay secures all Ray clusters by itself: the one of the platform does where it finds Routes.
func (s Set) KubeRaySecures() bool { return s.platformKubeRay && s.Has(Route) }

// WithPlatformKubeRay returns the set of a cluster that serves the same, with or without the KubeRay of the platform.
func (s Set) WithPlatformKubeRay(there bool) Set {
	s.platformKubeRay = there
	return s
}

// Equal reports whether both sets hold the same.
func (s Set) Equal(other Set) bool {
	return maps.Equal(s.kinds, other.kinds) && s.platformKubeRay == other.platformKubeRay
}

// Kinds returns the members, ordered by group, version and kind. The slice belongs to the caller.
func (s Set) Kinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(s.kinds), func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
}

// String lists the members as "Kind.group/version", for logs.
func (s Set) String() string {
	names := make([]string, 0, len(s.kinds))
	for _, k := range s.Kinds() {
		names = append(names, k.Kind+"."+k.GroupVersion().String())
	}
	return strings.Join(names, ",")
}

// minus returns the members that other lacks, ordered.
func (s Set) difference(other Set) []schema.GroupVersionKind {
	return slices.DeleteFunc(s.Kinds(), other.Has)
}
