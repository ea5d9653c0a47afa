package component

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
)

// Component is one product area of the operator. Nil fields are skipped.
type Component struct {
	// Name identifies the component in flags, logs, metrics and folders.
	Name string
	// Requires are the kinds that must be served before its controllers start. A component with controllers requires at least one: before
	// the first discovery, every API would count as absent.
	Requires []schema.GroupVersionKind
	// Caches are the kinds it reads from the cache, custom resources only while they are served.
	Caches []managercache.Need
	// Transform removes fields before an object is cached, and returns objects of other kinds unchanged. May be nil.
	Transform toolscache.TransformFunc
	// Webhooks registers its webhooks, also for a disabled component: the webhook configurations in the cluster are static, so
	// admission must return "allowed" then, and conversion must work.
	Webhooks func(mgr ctrl.Manager, enabled bool) error
	// Controllers adds its controllers to the manager. It is called on the leader when the required kinds are served, and again after an
	// error.
	Controllers func(ctx context.Context, mgr ctrl.Manager) error
}

// CapabilitySource provides the set of served kinds; *capability.Watcher implements it.
type CapabilitySource interface {
	Current() capability.Set
	OnChange(context.Context, func(capability.Set))
}

// WatchedKinds returns the kinds whose API is watched: those of package capability, and the custom resources that the components require or
// cache.
func WatchedKinds(enabled []Component) capability.Set {
	kinds := capability.NewSet(capability.Known()...)
	for _, c := range enabled {
		kinds.Insert(c.Requires...)
		for _, need := range c.Caches {
			if managercache.IsCustomKind(need.Kind) {
				kinds.Insert(need.Kind)
			}
		}
	}
	return kinds
}

// Setup registers webhooks, and adds controllers as soon as the kinds that they require are served. It must be called before the manager
// starts. Components of one name are enabled together. Errors of controllers are logged and retried.
func Setup(mgr ctrl.Manager, caps CapabilitySource, all []Component, enabled func(name string) bool) error {
	for _, c := range all {
		on := enabled(c.Name)
		mgr := instrument(mgr, c.Name, on)
		if c.Webhooks != nil {
			if err := c.Webhooks(mgr, on); err != nil {
				return fmt.Errorf("component %s: setting up webhooks: %w", c.Name, err)
			}
		}
		if !on || c.Controllers == nil {
			continue
		}
		log := mgr.GetLogger().WithValues("component", c.Name)
		if !caps.Current().HasAll(c.Requires...) {
			log.Info("Waiting for the APIs that the component requires", "requires", capability.NewSet(c.Requires...).String())
		}
		if err := mgr.Add(&supervisor{c, mgr, caps, log}); err != nil {
			return fmt.Errorf("component %s: adding to the manager: %w", c.Name, err)
		}
	}
	return nil
}
