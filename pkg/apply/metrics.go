package apply

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The values of the verb label.
const (
	verbApply   = "apply"
	verbAdopt   = "adopt"
	verbRelease = "release"
	verbDelete  = "delete"
	verbPatch   = "patch"
	verbCreate  = "create"
)

var (
	writes = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_apply_writes_total",
		Help: "Write requests for child objects, by component, kind and verb (apply, adopt, release, delete, patch, create).",
	}, []string{"component", "kind", "verb"})
	skipped = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_apply_skipped_total",
		Help: "Child objects that already had their desired state, so that no request was sent, by component and kind.",
	}, []string{"component", "kind"})
)

func (a *Applier) wrote(kind, verb string) {
	writes.WithLabelValues(a.Component, kind, verb).Inc()
}

func (a *Applier) skip(kind string) {
	skipped.WithLabelValues(a.Component, kind).Inc()
}

// Changes counts what was written under one context. It is safe for concurrent use.
type Changes struct {
	number [3]atomic.Int32
	// outer counts the same writes, for a caller that counts too.
	outer *Changes
}

// The numbers that Changes holds.
const (
	created = iota
	updated
	removed
)

type changesKey struct{}

// CountChanges returns a context under which every write that succeeds is counted, for controllers that inform users of it.
func CountChanges(ctx context.Context) (context.Context, *Changes) {
	outer, _ := ctx.Value(changesKey{}).(*Changes)
	c := &Changes{outer: outer}
	return context.WithValue(ctx, changesKey{}, c), c
}

// Created returns how many objects were made.
func (c *Changes) Created() int { return int(c.number[created].Load()) }

// Updated returns how many objects were changed.
func (c *Changes) Updated() int { return int(c.number[updated].Load()) }

// Removed returns how many objects were deleted.
func (c *Changes) Removed() int { return int(c.number[removed].Load()) }

// Any reports whether anything was written.
func (c *Changes) Any() bool { return c.Created()+c.Updated()+c.Removed() > 0 }

// count notes one write, if the caller counts.
func count(ctx context.Context, which int) {
	for c, _ := ctx.Value(changesKey{}).(*Changes); c != nil; c = c.outer {
		c.number[which].Add(1)
	}
}
