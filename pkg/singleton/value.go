package singleton

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Value is a value that is parsed from a singleton while its API is served. The zero value watches nothing and has no object.
type Value[T any] struct {
	*Watcher
	Listeners[T] // called after each change
	parse        func(*unstructured.Unstructured) T

	mu            sync.Mutex
	served, known bool
	current       T
}

// Unreadable is the state of a Value whose object cannot be read, because its API is not served or reading it is forbidden.
type Unreadable int

const (
	// Unknown leaves the value as it is.
	Unknown Unreadable = iota
	// Absent sets the value of a missing object.
	Absent
	// AbsentUnlessKnown sets the value of a missing object if none was read before.
	AbsentUnlessKnown
)

// NewValue returns a Value that is idle until SetServed. parse returns the value of an object, which is nil if it does not exist.
// OnUpdate and OnUnavailable of the options are overwritten.
func NewValue[T any](o Options, unreadable Unreadable, parse func(*unstructured.Unstructured) T) *Value[T] {
	v := &Value[T]{parse: parse}
	o.OnUpdate = v.onUpdate
	o.OnUnavailable = func() {
		if _, known := v.Current(); unreadable == Absent || unreadable == AbsentUnlessKnown && !known {
			v.onUpdate(nil)
		}
	}
	v.Watcher = New(o)
	return v
}

// SetServed sets whether the cluster serves the API. Without the API there is no object. It must not be called concurrently.
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

// Current returns the value, and whether it is known. It is unknown while the API is served and the object was not read.
func (v *Value[T]) Current() (T, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current, v.known || !v.served
}

func (v *Value[T]) onUpdate(object *unstructured.Unstructured) { v.update(object, true) }

// update stores the value of an object, unless served has changed since, and notifies the listeners of a change.
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
