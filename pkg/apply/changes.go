package apply

import (
	"context"
	"sync"
)

// Changes counts what was written under one context. It is safe for concurrent use.
type Changes struct {
	mu                        sync.Mutex
	created, updated, removed int
}

type changesKey struct{}

// Count returns a context under which every write that succeeds is counted, for controllers that tell users of it.
func Count(ctx context.Context) (context.Context, *Changes) {
	c := &Changes{}
	return context.WithValue(ctx, changesKey{}, c), c
}

// Created returns how many objects were made, Updated how many were changed, Removed how many were deleted.
func (c *Changes) Created() int { return c.read(&c.created) }

// Updated returns how many objects were changed.
func (c *Changes) Updated() int { return c.read(&c.updated) }

// Removed returns how many objects were deleted.
func (c *Changes) Removed() int { return c.read(&c.removed) }

func (c *Changes) read(n *int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *n
}

// count notes one write, if anybody counts.
func count(ctx context.Context, which func(*Changes) *int) {
	c, ok := ctx.Value(changesKey{}).(*Changes)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	*which(c)++
}

func created(c *Changes) *int { return &c.created }
func updated(c *Changes) *int { return &c.updated }
func removed(c *Changes) *int { return &c.removed }
