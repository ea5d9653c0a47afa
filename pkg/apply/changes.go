package apply

import (
	"context"
	"sync/atomic"
)

// Changes counts what was written under one context. It is safe for concurrent use.
type Changes struct {
	created, updated, removed atomic.Int32
}

type changesKey struct{}

// Count returns a context under which every write that succeeds is counted, for controllers that tell users of it.
func Count(ctx context.Context) (context.Context, *Changes) {
	c := &Changes{}
	return context.WithValue(ctx, changesKey{}, c), c
}

// Created returns how many objects were made.
func (c *Changes) Created() int { return int(c.created.Load()) }

// Updated returns how many objects were changed.
func (c *Changes) Updated() int { return int(c.updated.Load()) }

// Removed returns how many objects were deleted.
func (c *Changes) Removed() int { return int(c.removed.Load()) }

// count notes one write, if anybody counts.
func count(ctx context.Context, which func(*Changes) *atomic.Int32) {
	if c, ok := ctx.Value(changesKey{}).(*Changes); ok {
		which(c).Add(1)
	}
}

func created(c *Changes) *atomic.Int32 { return &c.created }
func updated(c *Changes) *atomic.Int32 { return &c.updated }
func removed(c *Changes) *atomic.Int32 { return &c.removed }
