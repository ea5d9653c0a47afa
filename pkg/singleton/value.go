package singleton

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Value is what one named object says while its API is served. The zero value follows nothing, and knows that there is no object.
type Value[T any] struct {
	*Watcher
	Listeners[T] // with each change
	parse        func(*unstructured.Unstructured) T

	mu            sync.Mutex
	served, known bool
	current       T
}

// NewValue returns a Value that waits for SetServed. The function makes it of the object, nil where there is none; Take of the options
// is not used.
func NewValue[T any](o Options, read func(*unstructured.Unstructured) T) *Value[T] {
	v := &Value[T]{parse: read}
	o.OnUpdate = v.onUpdate
	v.Watcher = New(o)
	return v
}

// SetServed says whether the cluster serves the API. Where it does not, there is no object. Call it from one goroutine at a time.
func (v *Value[T]) SetServed(served bool) {
	v.mu.Lock()
	changed := v.served != served
	v.served, v.known = served, v.known && !changed
	v.mu.Unlock()
	if !changed {
		return
	}
	if !served {
		v.update(nil, false)
	}
	v.Watcher.SetServed(served)
}

// Current returns the value, and whether it is known: while the API is served and the object has not been read, it is not.
func (v *Value[T]) Current() (T, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current, v.known || !v.served
}

func (v *Value[T]) onUpdate(object *unstructured.Unstructured) { v.update(object, true) }

// set stores what the object says, unless its API came or went meanwhile, and notifies the listeners of a change.
func (v *Value[T]) update(object *unstructured.Unstructured, served bool) {
	value := v.parse(object)
	v.mu.Lock()
	if v.served != served {
		v.mu.Unlock()
		return
	}
	changed := served && !v.known || !equality.Semantic.DeepEqual(v.current, value)
	v.current, v.known = value, served
	v.mu.Unlock()
	if changed {
		v.Notify(value)
	}
}
