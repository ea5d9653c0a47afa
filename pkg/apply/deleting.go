package apply

import (
	"context"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is how long a deletion may take before it is worth a word: pods have grace periods, and dependents go first.
const patience = time.Minute

// DeletingError says that an object is being deleted, and will be made again when it is gone.
type DeletingError struct {
	Kind, Namespace, Name string
	// Since is when its deletion began, Finalizers are what holds it.
	Since      time.Time
	Finalizers []string
	// Stuck: that was more than a minute ago, so it belongs into a condition. Otherwise its end is not seen in the cache, because it
	// does not bear our labels, and trying again in a moment is all there is to do.
	Stuck bool
}

// Deleting describes the deletion of an object that has a deletion timestamp.
func Deleting(kind string, object metav1.Object) *DeletingError {
	return &DeletingError{
		Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), Since: object.GetDeletionTimestamp().Time, Finalizers: object.GetFinalizers(),
	}
}

// Error implements error.
func (e *DeletingError) Error() string {
	text := title(e.Kind, e.Namespace, e.Name) + " is being deleted since " + e.Since.UTC().Format(time.RFC3339)
	if len(e.Finalizers) > 0 {
		text += ", held by finalizers " + strings.Join(e.Finalizers, ", ") + " until those who set them take them off,"
	}
	return text + " and will be made again when it is gone"
}

// awaitEnd waits for the end of an object, without an error while that takes no longer than usual and is an event.
func (a *Applier) awaitEnd(ctx context.Context, o owner, c child, object metav1.Object) error {
	a.memory.drop(o.uid, c.key)
	err := Deleting(c.key.Kind, object)
	left := patience - a.Clock.Since(err.Since)
	if err.Stuck = left <= 0; err.Stuck || !a.labelled(object) {
		return err
	}
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		v.within(left)
	}
	return nil
}

// visit is when an owner is to be looked at again.
type visit struct {
	mu   sync.Mutex
	left time.Duration
}

type visitKey struct{}

// Revisit returns a context under which Apply notes that it has to be called again although nothing may happen until then, and a
// function that returns after which time; 0 for never.
func Revisit(ctx context.Context) (context.Context, func() time.Duration) {
	v := &visit{}
	return context.WithValue(ctx, visitKey{}, v), func() time.Duration { return v.within(0) }
}

// within notes a time, 0 for none, and returns the shortest that was noted.
func (v *visit) within(left time.Duration) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if left > 0 && (v.left == 0 || left < v.left) {
		v.left = left
	}
	return v.left
}
