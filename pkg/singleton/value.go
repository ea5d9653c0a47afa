package singleton

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Value is a value that is parsed from the watched objects while their API is served. The zero value watches nothing.
type Value[T any] struct {
	*Watcher
	Listeners[T]   // called after each change
	absent       T // the value without an object

	mu            sync.Mutex
	served, known bool
	current       T
}

// Unreadable is the state of a Value whose object cannot be read, because its API is not served or reading it is forbidden.
type Unreadable int

const (
	// Unknown does not change the value.
	Unknown Unreadable = iota
	// Absent sets the value of a missing object.
	Absent
	// AbsentUnlessKnown sets the value of a missing object if none was read before.
	AbsentUnlessKnown
)

// NewValue returns a Value that is idle until SetServed. parse returns the value of an object, which is nil if it does not exist.
// OnUpdate and OnUnavailable of the options are overwritten.
func NewValue[T any](o Options, unreadable Unreadable, parse func(*unstructured.Unstructured) T) *Value[T] {
	v := &Value[T]{absent: parse(nil)}
	o.OnUpdate = func(object *unstructured.Unstructured) { v.update(parse(object), true) }
	return v.withWatcher(o, unreadable)
}

// NewList is NewValue for all objects with the name or labels of the options.
func NewList[T any](o Options, unreadable Unreadable, parse func([]*unstructured.Unstructured) T) *Value[T] {
	v := &Value[T]{absent: parse(nil)}
	o.OnList = func(objects []*unstructured.Unstructured) { v.update(parse(objects), true) }
	return v.withWatcher(o, unreadable)
}

func (v *Value[T]) withWatcher(o Options, unreadable Unreadable) *Value[T] {
	o.OnUnavailable = func() {
		if _, known := v.Current(); unreadable == Absent || unreadable == AbsentUnlessKnown && !known {
			v.update(v.absent, true)
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
		v.update(v.absent, false)
	}
	v.Watcher.SetServed(served)
}

// Current returns the value, and whether it is known. While the API is served, it is unknown until the object is read or counts as absent.
func (v *Value[T]) Current() (T, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current, v.known || !v.served
}

// update stores a value, unless served has changed since, and notifies the listeners of a change.
func (v *Value[T]) update(value T, served bool) {
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
