package modelcatalog

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/follow"
)

// authName is the name of the one Auth.
const authName = "auth"

// adminGroups are the groups of administrators in an Auth. A missing object, a missing field and a field of another type name
// none, and blank names are left out.
func adminGroups(auth *unstructured.Unstructured) []string {
	if auth == nil {
		return nil
	}
	groups, _, err := unstructured.NestedStringSlice(auth.Object, "spec", "adminGroups")
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(groups, func(name string) bool { return name == "" })
}

// newAdmins follows the groups of administrators while Auth is served.
func newAdmins(ctx context.Context, dyn dynamic.Interface, served *capability.Watcher, clk clock.Clock, log logr.Logger) *follow.Value[[]string] {
	resource := capability.PlatformAuth.GroupVersion().WithResource("auths")
	groups := follow.NewValue(follow.Options{
		Client: dyn.Resource(resource), Resource: resource.GroupResource(), Name: authName, Clock: clk, Log: log.WithName("auth"),
	}, adminGroups)
	served.Follow(ctx, func(s capability.Set) { groups.SetServed(s.Has(capability.PlatformAuth)) })
	return groups
}
