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

// Component is what one product area adds to the manager. Nil fields mean "nothing to add".
type Component struct {
	// Name is the word for the component in flags, logs, metrics and folders.
	Name string
	// Types register its API types. They are registered whether it is enabled or not, and cost nothing without an
	// informer.
	Types []func(*runtime.Scheme) error
	// Requires are the kinds without which its controllers do not run.
	Requires []schema.GroupVersionKind
	// Optional are kinds that its controllers use while they are served, beside those of package capability.
	Optional []schema.GroupVersionKind
	// Caches are the kinds it keeps in memory.
	Caches []CacheNeed
	// Transform shortens objects before they are kept in memory. It returns those of other kinds unchanged. May be nil.
	Transform toolscache.TransformFunc
	// Webhooks registers its webhooks. It is called for disabled components too: lists of webhooks in the cluster are
	// static, so the paths must answer "allowed" then, and conversion must continue.
	Webhooks func(mgr ctrl.Manager, enabled bool) error
	// Controllers builds its controllers and adds them to the manager. With Requires, it is called when the required kinds are
	// served and this replica leads, and again after it has failed. Otherwise it is called once, before the start.
	Controllers func(ctx context.Context, mgr ctrl.Manager) error
}

// Capabilities says which kinds are served; *capability.Watcher does.
type Capabilities interface {
	Current() capability.Set
	Follow(context.Context, func(capability.Set))
}

// Names returns the names of the components, in their order.
func Names(all []Component) []string {
	out := make([]string, 0, len(all))
	for _, c := range all {
		out = append(out, c.Name)
	}
	return out
}

// AddToScheme registers the types of every component.
func AddToScheme(s *runtime.Scheme, all []Component) error {
	for _, c := range all {
		types := runtime.SchemeBuilder(c.Types)
		if err := types.AddToScheme(s); err != nil {
			return fmt.Errorf("component %s: registering types: %w", c.Name, err)
		}
	}
	return nil
}

// Enabled returns the components for which enabled says yes, in their order.
func Enabled(all []Component, enabled func(name string) bool) []Component {
	var out []Component
	for _, c := range all {
		if enabled(c.Name) {
			out = append(out, c)
		}
	}
	return out
}

// FollowedKinds returns the kinds whose coming and going matters: the optional ones that every program of this family
// knows, and those which the given components require or use.
func FollowedKinds(enabled []Component) []schema.GroupVersionKind {
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

// Setup registers webhooks now, and controllers now or as soon as the kinds that they require are served. Call it
// before the manager starts. It returns an error when something cannot be set up that should be ready now; whatever
// happens to a component that starts later is logged and tried again.
func Setup(ctx context.Context, mgr ctrl.Manager, caps Capabilities, all []Component, enabled func(name string) bool) error {
	for _, c := range all {
		on := enabled(c.Name)
		mgr := observe(mgr, c.Name, on)
		if c.Webhooks != nil {
			if err := c.Webhooks(mgr, on); err != nil {
				return fmt.Errorf("component %s: setting up webhooks: %w", c.Name, err)
			}
		}
		if !on || c.Controllers == nil {
			continue
		}
		if err := c.start(ctx, mgr, caps); err != nil {
			return fmt.Errorf("component %s: setting up controllers: %w", c.Name, err)
		}
	}
	return nil
}

// start hands the controllers to the manager, directly or through a supervisor.
func (c Component) start(ctx context.Context, mgr *observed, caps Capabilities) error {
	if len(c.Requires) == 0 {
		err := c.Controllers(ctx, mgr)
		mgr.running(err == nil)
		return err
	}
	s := newSupervisor(c, mgr, caps)
	if !caps.Current().HasAll(c.Requires...) {
		s.log.Info("Waiting for the APIs that the component requires", "requires", capability.NewSet(c.Requires...).String())
	}
	return mgr.Add(s)
}
