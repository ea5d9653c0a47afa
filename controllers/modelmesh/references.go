package modelmesh

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// References knows what Predictors refer to and does not exist: entries of the storage Secret, and claims. The controller of runtimes, which
// reads these anyway, notes it, and that of models reports it. The zero value is ready.
type References struct {
	mu       sync.Mutex
	missing  map[string]map[string][]reference.Missing // by namespace and Predictor
	onChange func(namespace, name string)
}

// Of returns what a Predictor lacks; false says that nothing was noted of its namespace yet, as after a restart.
func (r *References) Of(namespace, name string) ([]reference.Missing, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, known := r.missing[namespace]
	return all[name], known
}

// Set notes what the Predictors of a namespace lack, by their names.
func (r *References) Set(namespace string, missing map[string][]reference.Missing) {
	for _, name := range r.replace(namespace, missing) {
		r.onChange(namespace, name)
	}
}

// replace returns the Predictors for which something has changed, if anyone asked for that. Everyone is called for a namespace of which
// nothing was noted, under an empty name.
func (r *References) replace(namespace string, missing map[string][]reference.Missing) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.missing[namespace]
	if r.missing == nil {
		r.missing = map[string]map[string][]reference.Missing{}
	}
	r.missing[namespace] = missing
	switch {
	case r.onChange == nil:
		return nil
	case !known:
		return []string{""}
	}
	names := slices.Concat(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(missing)))
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return reflect.DeepEqual(before[name], missing[name]) })
}

// Subscribe names who is called for each Predictor whose references have changed, and without a name for all of a namespace of which
// nothing was known. It is called once, before
// the controllers start.
func (r *References) Subscribe(changed func(namespace, name string)) { r.onChange = changed }
