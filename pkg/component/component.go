package component

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// Component is one product area of the operator. Nil fields are skipped.
type Component struct {
	// Name identifies the component in flags, logs, metrics and folders.
	Name string
	// Types add its API types to the scheme. They are added even if the component is disabled.
	Types []func(*runtime.Scheme) error
	// Requires are the kinds that must be served before its controllers start.
	Requires []schema.GroupVersionKind
	// Optional are further kinds, besides those of package capability, that its controllers use only while they are served.
	Optional []schema.GroupVersionKind
	// Caches are the kinds it reads from the cache.
	Caches []CacheNeed
	// Transform removes fields before an object is cached, and returns objects of other kinds unchanged. May be nil.
	Transform toolscache.TransformFunc
	// Webhooks registers its webhooks, also for a disabled component: the webhook configurations in the cluster are static, so
	// admission must return "allowed" then, and conversion must work.
	Webhooks func(mgr ctrl.Manager, enabled bool) error
	// Controllers adds its controllers to the manager. It is called once before the manager starts. With Requires, it is called on the
	// leader when the required kinds are served, and again after an error.
	Controllers func(ctx context.Context, mgr ctrl.Manager) error
}

// CapabilitySource provides the set of served kinds; *capability.Watcher implements it.
type CapabilitySource interface {
	Current() capability.Set
	OnChange(context.Context, func(capability.Set))
}

// Names returns the names of the components in order.
func Names(all []Component) []string {
	out := make([]string, 0, len(all))
	for _, c := range all {
		out = append(out, c.Name)
	}
	return out
}

// AddToScheme adds the types of all components.
func AddToScheme(s *runtime.Scheme, all []Component) error {
	for _, c := range all {
		types := runtime.SchemeBuilder(c.Types)
		if err := types.AddToScheme(s); err != nil {
			return fmt.Errorf("component %s: registering types: %w", c.Name, err)
		}
	}
	return nil
}

// WatchedKinds returns the kinds whose API is watched: those of package capability, and those that the components require or use.
func WatchedKinds(enabled []Component) []schema.GroupVersionKind {
	kinds := capability.Known()
	for _, c := range enabled {
		for _, kind := range slices.Concat(c.Requires, c.Optional) {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

// Setup registers webhooks, and adds controllers as soon as the kinds that they require are served. It must be called before the manager
// starts. Errors of components that start later are logged and retried.
func Setup(ctx context.Context, mgr ctrl.Manager, caps CapabilitySource, all []Component, enabled func(name string) bool) error {
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
		if err := c.addControllers(ctx, mgr, caps); err != nil {
			return fmt.Errorf("component %s: setting up controllers: %w", c.Name, err)
		}
	}
	return nil
}

// addControllers adds the controllers to the manager, directly or through a supervisor.
func (c Component) addControllers(ctx context.Context, mgr *instrumentedManager, caps CapabilitySource) error {
	if len(c.Requires) == 0 {
		err := c.Controllers(ctx, mgr)
		mgr.setReady(controllers, err == nil)
		return err
	}
	log := mgr.GetLogger().WithValues("component", c.Name)
	if !caps.Current().HasAll(c.Requires...) {
		log.Info("Waiting for the APIs that the component requires", "requires", capability.NewSet(c.Requires...).String())
	}
	return mgr.Add(&supervisor{c, mgr, caps, log})
}
