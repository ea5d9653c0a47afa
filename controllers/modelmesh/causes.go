package modelmesh

import (
	"context"
	"maps"
	"slices"
)

// Cause says why a runtime has no pod that serves models.
type Cause struct {
	// Message is one line for people; "" says that nothing is wrong, or not yet.
	Message string
	// Invalid reports that the runtime, or something that it refers to, has to be changed first.
	Invalid bool
}

// Causes knows why runtimes have no pods. The controller of runtimes notes it, and that of models reports it. The zero value is ready.
type Causes struct {
	byNamespace SyncMap[string, map[string]Cause] // by namespace and runtime
	onChange    func(namespace string)
}

// Set notes why runtimes of a namespace have no pods, by their names; one that is missing has no cause. One caller at a time sets those of
// a namespace.
func (c *Causes) Set(namespace string, causes map[string]Cause) {
	before, known := c.byNamespace.Get(namespace)
	c.byNamespace.Set(namespace, causes)
	if c.onChange != nil && (!known || !maps.Equal(before, causes)) {
		c.onChange(namespace)
	}
}

// Forget drops what is known of a namespace that is not served any more.
func (c *Causes) Forget(namespace string) { c.byNamespace.Delete(namespace) }

// Subscribe names who is called for each namespace with other causes than before. It is called once, before the controllers start.
func (c *Causes) Subscribe(changed func(namespace string)) { c.onChange = changed }

// Cause says why no runtime of a namespace serves models with a label; known is false until the controller of runtimes has looked. It is
// invalid only if all of these runtimes are.
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
