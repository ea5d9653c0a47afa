package modelmesh

import (
	"maps"
	"reflect"
	"slices"

	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// MissingReferences holds, per Predictor, the references to storage entries and PersistentVolumeClaims that do not exist. The runtimes
// controller sets them, the models controller reports them. The zero value is ready to use.
type MissingReferences struct {
	byNamespace SyncMap[string, map[string][]reference.Missing] // by namespace and Predictor
	onChange    func(namespace, name string)
}

// Get returns the missing references of a Predictor, or false if those of its namespace are not known yet.
func (r *MissingReferences) Get(namespace, name string) ([]reference.Missing, bool) {
	byName, known := r.byNamespace.Get(namespace)
	return byName[name], known
}

// Set stores the missing references of a namespace by Predictor name. It must not be called concurrently for one namespace.
func (r *MissingReferences) Set(namespace string, missing map[string][]reference.Missing) {
	previous, known := r.byNamespace.Get(namespace)
	r.byNamespace.Set(namespace, missing)
	if r.onChange == nil {
		return
	}
	if !known {
		r.onChange(namespace, "")
	}
	union := map[string][]reference.Missing{}
	maps.Copy(union, previous)
	maps.Copy(union, missing)
	for _, name := range slices.Sorted(maps.Keys(union)) {
		if !reflect.DeepEqual(previous[name], missing[name]) {
			r.onChange(namespace, name)
		}
	}
}

// Forget removes a namespace that is no longer reconciled.
func (r *MissingReferences) Forget(namespace string) {
	r.Set(namespace, nil)
	r.byNamespace.Delete(namespace)
}

// Subscribe sets the handler of changes. It is called once, before the controllers start. The handler gets the name of each changed
// Predictor, or an empty name for all Predictors when a namespace is set for the first time.
func (r *MissingReferences) Subscribe(changed func(namespace, name string)) { r.onChange = changed }
