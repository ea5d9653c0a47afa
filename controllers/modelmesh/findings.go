package modelmesh

import (
	"context"
	"reflect"
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// Findings holds the findings of the runtimes controller about each namespace, by the name of a runtime or Predictor. The models controller
// reports them. The zero value is ready to use.
type Findings[V any] struct {
	// Listeners are called with each namespace whose findings changed.
	singleton.Listeners[string]
	byNamespace reconciler.SyncMap[string, map[string]V]
}

// Get returns the finding about a name, and whether the findings of its namespace are known yet.
func (f *Findings[V]) Get(namespace, name string) (V, bool) {
	byName, known := f.byNamespace.Get(namespace)
	return byName[name], known
}

// Set stores the findings of a namespace and notifies the listeners of changes. It must not be called concurrently for one namespace.
func (f *Findings[V]) Set(namespace string, byName map[string]V) {
	previous, known := f.byNamespace.Get(namespace)
	f.byNamespace.Set(namespace, byName)
	if !known || !reflect.DeepEqual(previous, byName) {
		f.Notify(namespace)
	}
}

// Forget removes the findings of a namespace.
func (f *Findings[V]) Forget(namespace string) { f.byNamespace.Delete(namespace) }

// Cause is the reason why a runtime has no serving pod.
type Cause struct {
	// Message is one line for users; empty if no problem is known.
	Message string
	// Invalid reports whether the runtime, or an object that it refers to, must be changed.
	Invalid bool
}

// Cause returns the reason why no runtime of a namespace serves models with the given label. It is empty if one of them has no problem,
// and Invalid only if all of them are invalid. known is false until the namespace has been reconciled.
func (c *Catalog) Cause(ctx context.Context, namespace, label string) (cause Cause, known bool, err error) {
	causes, known := c.Causes.byNamespace.Get(namespace)
	if len(causes) == 0 {
		return Cause{}, known, nil
	}
	runtimes, err := c.supportingRuntimes(ctx, namespace, label)
	if err != nil {
		return Cause{}, false, err
	}
	slices.Sort(runtimes)
	for _, name := range runtimes {
		found := causes[name]
		if found.Message == "" {
			return Cause{}, true, nil
		}
		if cause.Message == "" || cause.Invalid && !found.Invalid {
			cause = Cause{Message: "runtime " + name + ": " + found.Message, Invalid: found.Invalid}
		}
	}
	return cause, true, nil
}
