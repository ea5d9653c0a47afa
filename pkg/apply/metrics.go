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

func (a *Applier) countWrite(kind, verb string) {
	writes.WithLabelValues(a.Component, kind, verb).Inc()
}

func (a *Applier) countSkipped(kind string) {
	skipped.WithLabelValues(a.Component, kind).Inc()
}

// Changes counts the successful writes in one context. It is safe for concurrent use.
type Changes struct {
	counts [3]atomic.Int32
	// outer is the Changes of the parent context, which counts the same writes.
	outer *Changes
}

// The indexes of Changes.counts.
const (
	created = iota
	updated
	deleted
)

type changesKey struct{}

// CountChanges returns a context that counts its successful writes.
func CountChanges(ctx context.Context) (context.Context, *Changes) {
	outer, _ := ctx.Value(changesKey{}).(*Changes)
	c := &Changes{outer: outer}
	return context.WithValue(ctx, changesKey{}, c), c
}

// Created returns the number of created objects.
func (c *Changes) Created() int { return int(c.counts[created].Load()) }

// Updated returns the number of updated objects.
func (c *Changes) Updated() int { return int(c.counts[updated].Load()) }

// Deleted returns the number of deleted objects.
func (c *Changes) Deleted() int { return int(c.counts[deleted].Load()) }

// Any reports whether an object was written.
func (c *Changes) Any() bool { return c.Created()+c.Updated()+c.Deleted() > 0 }

// countChange counts one write in all Changes of the context.
func countChange(ctx context.Context, index int) {
	for c, _ := ctx.Value(changesKey{}).(*Changes); c != nil; c = c.outer {
		c.counts[index].Add(1)
	}
}
