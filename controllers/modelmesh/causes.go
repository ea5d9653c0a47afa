package modelmesh

import (
	"context"
	"maps"
	"slices"
)

// Cause is the reason why a runtime has no serving pod.
type Cause struct {
	// Message is one line for users; empty if no problem is known.
	Message string
	// Invalid reports whether the runtime, or an object that it refers to, must be changed.
	Invalid bool
}

// Causes holds the reasons why runtimes have no serving pods. The runtimes controller sets them, the models controller reports them.
// The zero value is ready to use.
type Causes struct {
	byNamespace SyncMap[string, map[string]Cause] // by namespace and runtime
	onChange    func(namespace string)
}

// Set stores the causes of a namespace by runtime name and notifies the subscriber of changes. It must not be called concurrently for
// one namespace.
func (c *Causes) Set(namespace string, causes map[string]Cause) {
	previous, known := c.byNamespace.Get(namespace)
	c.byNamespace.Set(namespace, causes)
	if c.onChange != nil && (!known || !maps.Equal(previous, causes)) {
		c.onChange(namespace)
	}
}

// Forget removes a namespace that is no longer enabled.
func (c *Causes) Forget(namespace string) { c.byNamespace.Delete(namespace) }

// Subscribe sets the handler that is called for each namespace with changed causes. It is called once, before the controllers start.
func (c *Causes) Subscribe(changed func(namespace string)) { c.onChange = changed }

// Cause returns the reason why no runtime of a namespace serves models with the given label. It is empty if one of them has no problem,
// and Invalid only if all of them are. known is false until the namespace was reconciled.
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
