package modelsource

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// retryPause is how long after trouble a backend is asked again.
const retryPause = 5 * time.Second

// ErrTooOld is what a Backend returns, wrapped or not, when it no longer knows what happened since a version.
var ErrTooOld = errors.New("the version is too old")

// Backend has models that can be listed, and watched from a version on.
type Backend interface {
	StatusWriter
	// List returns all models, and the version of the moment, a number.
	List(ctx context.Context) (entries []*Entry, version string, err error)
	// Watch hands over, one after the other, what changed after a version, until ctx ends or something breaks. It returns an error in
	// any case, ErrTooOld when a new listing is needed.
	Watch(ctx context.Context, after string, handle func(Change)) error
}

// RefreshAndWatch is a Source on a Backend: it lists, watches from there on, goes on watching after a break, and lists anew when the
// backend forgot its place.
type RefreshAndWatch struct {
	*memory
	backend Backend
	version string // what a watch goes on from
	floor   uint64 // the version of the last listing
	listed  bool
}

var _ Source = &RefreshAndWatch{}

// NewRefreshAndWatch returns a source that knows nothing before it is started.
func NewRefreshAndWatch(o Options, b Backend) *RefreshAndWatch {
	return &RefreshAndWatch{memory: newMemory(o, b), backend: b}
}

// Start implements Source. It tries until the backend was listed; the error is that of ctx.
func (r *RefreshAndWatch) Start(ctx context.Context) error {
	for !r.refresh(ctx) {
		if err := r.pause(ctx); err != nil {
			return fmt.Errorf("listing %s for the first time: %w", r.Title, err)
		}
	}
	go r.follow(ctx)
	return nil
}

// follow keeps up with the backend until ctx ends.
func (r *RefreshAndWatch) follow(ctx context.Context) {
	for {
		if r.listed || r.refresh(ctx) {
			r.watch(ctx)
		}
		if r.pause(ctx) != nil {
			return
		}
	}
}

// watch goes on from the version that was seen last. Where that is too old, it lists at once and goes on from there.
func (r *RefreshAndWatch) watch(ctx context.Context) {
	err := r.backend.Watch(ctx, r.version, r.handle)
	if errors.Is(err, ErrTooOld) {
		r.listed = false
		if r.refresh(ctx) {
			err = r.backend.Watch(ctx, r.version, r.handle)
		}
	}
	if ctx.Err() == nil {
		r.Log.Info("Models are not watched for now; it is tried again", "source", r.Name, "reason", reason(err))
	}
}

// reason is the text of an error, also where a plugin should have given one and did not.
func reason(err error) string {
	if err == nil {
		return "it ended without an error"
	}
	return err.Error()
}

// handle takes a change. One from before the last listing is in that already, whatever became of it.
func (r *RefreshAndWatch) handle(c Change) {
	after, ok := r.memory.version(c.Entry)
	if !ok || after <= r.floor {
		return
	}
	if after > number(r.version) {
		r.version = c.Entry.Version
	}
	r.take(c)
}

// refresh lists, and returns whether that succeeded.
func (r *RefreshAndWatch) refresh(ctx context.Context) bool {
	entries, version, err := r.backend.List(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.Log.Info("Models cannot be listed for now; it is tried again", "source", r.Name, "reason", err.Error())
		}
		return false
	}
	listed := make(map[types.NamespacedName]bool, len(entries))
	for _, e := range entries {
		listed[nameOf(e)] = true
		r.take(Change{Entry: e})
	}
	for _, name := range r.retain(listed, number(version)) {
		r.listeners.Notify(name)
	}
	r.version, r.floor, r.listed = version, number(version), true
	return true
}

// pause waits before the next attempt; the error says that there is none.
func (m *memory) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.Clock.After(retryPause):
		return nil
	}
}

// number is a version as a number, 0 for one that is none: everything is newer.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
