package modelcatalog

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/follow"
)

// authName is the name of the one Auth.
const authName = "auth"

// adminGroups are the groups of administrators in an Auth. A missing object, a missing field and a field of another type name
// none, and blank names stand for nobody.
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

// admins follows the groups of administrators while Auth is served. It is a manager Runnable.
type admins struct {
	*follow.Follower
	served  func() capability.Set
	changes chan event.GenericEvent

	mu     sync.Mutex
	known  bool
	groups []string
	object client.Object
}

func newAdmins(ctx context.Context, dyn dynamic.Interface, served *capability.Watcher, clk clock.Clock, log logr.Logger) *admins {
	a := &admins{served: served.Current, changes: make(chan event.GenericEvent, 1)}
	resource := capability.PlatformAuth.GroupVersion().WithResource("auths")
	a.Follower = follow.New(follow.Options{
		Client: dyn.Resource(resource), Resource: resource.GroupResource(), Name: authName, Clock: clk, Log: log.WithName("auth"), Take: a.take,
	})
	served.Follow(ctx, func(s capability.Set) {
		on := s.Has(capability.PlatformAuth)
		a.SetServed(on)
		if !on {
			a.reset()
		}
	})
	return a
}

// now returns the groups, and whether they are known: while Auth is served but has not been read nothing is.
func (a *admins) now() ([]string, bool) {
	if !a.served().Has(capability.PlatformAuth) {
		return nil, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.groups, a.known
}

// reset forgets what was known: the API is gone.
func (a *admins) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known, a.groups = false, nil
}

// take stores the groups of an Auth and wakes the controller when they are news.
func (a *admins) take(auth *unstructured.Unstructured) {
	groups := adminGroups(auth)
	a.mu.Lock()
	news := !a.known || !slices.Equal(groups, a.groups)
	a.known, a.groups = true, groups
	object := a.object
	a.mu.Unlock()
	if !news || object == nil {
		return
	}
	select {
	case a.changes <- event.GenericEvent{Object: object}:
	default: // one that has not been taken up yet covers this change too
	}
}

// source wakes a controller with the given object whenever the groups change.
func (a *admins) source(object client.Object, h handler.EventHandler) source.Source {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.object = object
	return source.Channel(a.changes, h)
}

// Start implements manager.Runnable.
func (a *admins) Start(ctx context.Context) error { return a.Follower.Start(ctx) }
