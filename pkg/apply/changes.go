package apply

import (
	"context"
	"sync/atomic"
	"time"

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

// send counts and sends a write request. It records the change if the request succeeds.
func (a *Applier) send(ctx context.Context, verb, kind string, change int, request func() error) error {
	writes.WithLabelValues(a.Component, kind, verb).Inc()
	err := request()
	if err == nil {
		recordChange(ctx, func(c *Changes) { c.counts[change].Add(1) })
	}
	return err
}

func (a *Applier) countSkipped(kind string) { skipped.WithLabelValues(a.Component, kind).Inc() }

// Changes records the successful writes in one context, and when Apply must be called again. It is safe for concurrent use.
type Changes struct {
	counts       [3]atomic.Int64
	requeueAfter atomic.Int64
	// outer is the Changes of the parent context, which records the same.
	outer *Changes
}

// The indexes of Changes.counts.
const (
	created = iota
	updated
	deleted
)

type changesKey struct{}

// RecordChanges returns a context that records changes.
func RecordChanges(ctx context.Context) (context.Context, *Changes) {
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

// RequeueAfter returns the time after which Apply must be called again although no watch event may arrive; 0 for none.
func (c *Changes) RequeueAfter() time.Duration { return time.Duration(c.requeueAfter.Load()) }

// recordChange updates all Changes of the context.
func recordChange(ctx context.Context, update func(*Changes)) {
	for c, _ := ctx.Value(changesKey{}).(*Changes); c != nil; c = c.outer {
		update(c)
	}
}

// requeueAfter records when Apply must be called again. The shortest time counts.
func requeueAfter(ctx context.Context, after time.Duration) {
	recordChange(ctx, func(c *Changes) {
		for old := c.requeueAfter.Load(); (old == 0 || int64(after) < old) && !c.requeueAfter.CompareAndSwap(old, int64(after)); {
			old = c.requeueAfter.Load()
		}
	})
}
