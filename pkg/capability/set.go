package capability

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is an immutable set of the optional kinds that are served, with the presence of the platform's KubeRay. The zero value is empty.
type Set struct {
	kinds           map[schema.GroupVersionKind]struct{}
	platformKubeRay bool
}

// NewSet returns a set of the given kinds.
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

// HasAll reports whether all of the kinds are served.
func (s Set) HasAll(kinds ...schema.GroupVersionKind) bool {
	return !slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return !s.Has(k) })
}

// OpenShift reports whether the cluster serves the configuration API of OpenShift and Routes. Features that need a single kind must check
// that kind, because other clusters may serve some of them.
func (s Set) OpenShift() bool { return s.Has(OpenShiftIngress) && s.Has(Route) }

// OAuth reports whether OpenShift has its OAuth server: with an external OIDC provider neither the server nor the API of users exists.
func (s Set) OAuth() bool { return s.OpenShift() && s.Has(UserGroup) }

// PlatformKubeRay reports whether KubeRay is part of Open Data Hub or OpenShift AI since 3.0.
func (s Set) PlatformKubeRay() bool { return s.platformKubeRay }

// KubeRaySecures reports whether KubeRay secures all Ray clusters by itself: the platform's KubeRay does if Routes are served.
func (s Set) KubeRaySecures() bool { return s.platformKubeRay && s.Has(Route) }

// WithPlatformKubeRay returns a copy of the set with the given presence of the platform's KubeRay.
func (s Set) WithPlatformKubeRay(present bool) Set {
	s.platformKubeRay = present
	return s
}

// Equal reports whether both sets are equal.
func (s Set) Equal(other Set) bool {
	return maps.Equal(s.kinds, other.kinds) && s.platformKubeRay == other.platformKubeRay
}

// Kinds returns the kinds ordered by group, version and kind. The caller may modify the slice.
func (s Set) Kinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(s.kinds), func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
}

// String returns the kinds as "Kind.group/version", for logs.
func (s Set) String() string {
	names := make([]string, 0, len(s.kinds))
	for _, k := range s.Kinds() {
		names = append(names, k.Kind+"."+k.GroupVersion().String())
	}
	return strings.Join(names, ",")
}

// difference returns the kinds that other lacks, in order.
func (s Set) difference(other Set) []schema.GroupVersionKind {
	return slices.DeleteFunc(s.Kinds(), other.Has)
}
