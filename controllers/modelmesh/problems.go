package modelmesh

import (
	"context"
	"reflect"
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// Problems holds the problems that the runtimes controller found in each namespace, by the name of a runtime or Predictor. The models
// controller reports them. The zero value is ready to use.
type Problems[V any] struct {
	// Listeners are called with each namespace whose problems changed.
	singleton.Listeners[string]
	byNamespace reconciler.SyncMap[string, map[string]V]
}

// Get returns the problem of a runtime or Predictor, and whether the problems of its namespace are known yet.
func (p *Problems[V]) Get(namespace, name string) (V, bool) {
	byName, known := p.byNamespace.Get(namespace)
	return byName[name], known
}

// Set stores the problems of a namespace and notifies the listeners of changes. It must not be called concurrently for one namespace.
func (p *Problems[V]) Set(namespace string, byName map[string]V) {
	previous, known := p.byNamespace.Get(namespace)
	p.byNamespace.Set(namespace, byName)
	if !known || !reflect.DeepEqual(previous, byName) {
		p.Notify(namespace)
	}
}

// Forget removes the problems of a namespace.
func (p *Problems[V]) Forget(namespace string) { p.byNamespace.Delete(namespace) }

// Cause is the reason why a runtime may have no serving pod.
type Cause struct {
	// Message is one line for users; empty if no problem is known.
	Message string
	// Invalid is true if the runtime, or an object that it refers to, must be changed.
	Invalid bool
}

// Cause returns the reason why no runtime of a namespace serves models with the given ModelMesh label. It is empty if no runtime supports
// the label or one that does has no problem, and Invalid only if all that do are invalid. known is false before the first reconcile.
func (l *Lister) Cause(ctx context.Context, namespace, modelLabel string) (cause Cause, known bool, err error) {
	causes, known := l.NotServingCauses.byNamespace.Get(namespace)
	if len(causes) == 0 {
		return Cause{}, known, nil
	}
	runtimes, err := l.supportingRuntimes(ctx, namespace, modelLabel)
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
