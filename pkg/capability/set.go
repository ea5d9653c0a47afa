package capability

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Set contains the optional kinds that are served, and whether the platform's KubeRay is installed. The zero value is empty. A Set that
// Watcher has returned is immutable.
type Set struct {
	sets.Set[schema.GroupVersionKind]
}

// NewSet returns a set of the given kinds.
func NewSet(kinds ...schema.GroupVersionKind) Set { return Set{sets.New(kinds...)} }

// Filter returns the given kinds that are served, in order.
func (s Set) Filter(kinds ...schema.GroupVersionKind) []schema.GroupVersionKind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k schema.GroupVersionKind) bool { return !s.Has(k) })
}

// IsOpenShift reports whether the cluster serves the configuration API of OpenShift and Routes. Features that need a single kind must check
// that kind, because other clusters may serve some of them.
func (s Set) IsOpenShift() bool { return s.HasAll(OpenShiftIngress, Route) }

// HasOAuth reports whether OpenShift has its OAuth server: with an external OIDC provider neither the server nor the API of users exists.
func (s Set) HasOAuth() bool { return s.IsOpenShift() && s.Has(UserGroup) }

// HasPlatformKubeRay reports whether the installed KubeRay is the one of Open Data Hub, or of OpenShift AI 3.0 or later.
func (s Set) HasPlatformKubeRay() bool { return s.Has(platformKubeRay) }

// KubeRaySecures reports whether KubeRay configures authentication and TLS of all RayClusters. The platform's KubeRay does if Routes are served.
func (s Set) KubeRaySecures() bool { return s.HasAll(platformKubeRay, Route) }

// WithPlatformKubeRay returns a copy of the set that reports whether the platform's KubeRay is installed.
func (s Set) WithPlatformKubeRay(installed bool) Set {
	if installed {
		return Set{s.Union(sets.New(platformKubeRay))}
	}
	return Set{s.Difference(sets.New(platformKubeRay))}
}

// Equal reports whether both sets are equal.
func (s Set) Equal(other Set) bool { return s.Set.Equal(other.Set) }

// String returns the kinds as "Kind.group/version", for logs.
func (s Set) String() string {
	names := make([]string, 0, len(s.Set))
	for k := range s.Set {
		names = append(names, k.Kind+"."+k.GroupVersion().String())
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}
