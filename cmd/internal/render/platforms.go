package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// DefaultPlatform is used where none is named.
const DefaultPlatform = "plain"

// Platforms are the clusters that can be assumed, from the one with the fewest APIs to the one with the most.
func Platforms() []string { return []string{"bare", "plain", "openshift"} }

// Platform returns what one of the Platforms serves.
func Platform(name string) (capability.Set, error) {
	plain := []schema.GroupVersionKind{
		capability.HTTPRoute, capability.ReferenceGrant, capability.ServiceMonitor, capability.PrometheusRule, capability.RayCluster,
		capability.InferenceService, capability.ServingRuntime, capability.ClusterServingRuntime,
	}
	switch name {
	case "bare":
		return capability.NewSet(), nil
	case "plain":
		return capability.NewSet(plain...), nil
	case "openshift":
		return capability.NewSet(append(slices.Clone(plain), capability.Route, capability.OpenShiftIngress, capability.OpenShiftProxy, capability.UserGroup, capability.ConsoleLink)...), nil
	}
	return capability.Set{}, fmt.Errorf("unknown platform %q; known platforms: %s", name, strings.Join(Platforms(), ", "))
}
