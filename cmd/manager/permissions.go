package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// startupGracePeriod is how long errors of a starting API server are tolerated. An API server rejects all requests until it has loaded
	// the roles, which takes seconds.
	startupGracePeriod = 15 * time.Second
	// refusalWindow is longer than the back-off of informers. A Forbidden response after a longer pause starts a new series.
	refusalWindow = 2 * time.Minute
	// watchCheckPeriod is how long after the start a forbidden watch counts although the list was allowed.
	watchCheckPeriod = 5 * time.Minute
)

// permissionMonitor stops the manager if an informer starts without an essential permission. It uses the responses to informers instead of
// access reviews, which are write requests. Only RBAC denials of list and watch count, because tenants cannot cause them. If a permission is
// removed later, informers retry.
type permissionMonitor struct {
	essential   map[schema.GroupResource]bool
	report      context.CancelCauseFunc
	clock       clock.PassiveClock
	gracePeriod time.Duration // how long Forbidden responses are tolerated
	startTime   time.Time

	mu     sync.Mutex
	series map[string]refusalSeries // by message
}

// refusalSeries is a series of Forbidden responses with pauses of at most refusalWindow.
type refusalSeries struct{ first, last time.Time }

// essentialResources returns the resources that the enabled components must be able to list and watch.
func essentialResources(enabled []componentSpec) map[schema.GroupResource]bool {
	out := map[schema.GroupResource]bool{}
	for _, spec := range enabled {
		for _, kind := range spec.Requires {
			resource, _ := meta.UnsafeGuessKindToResource(kind) // correct for all our kinds
			out[resource.GroupResource()] = true
		}
	}
	return out
}

// handle is the DefaultWatchErrorHandler of the cache.
func (p *permissionMonitor) handle(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	p.check(err, reflector.LastSyncResourceVersion() != "")
}

// check reports a series of RBAC denials that exceeds the grace period. RBAC denials are recognized by their message, because the Status
// has no field for them.
func (p *permissionMonitor) check(err error, listed bool) {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return
	}
	message, details := status.Status().Message, status.Status().Details
	now := p.clock.Now()
	denied := !listed && strings.Contains(message, " cannot list resource ") || strings.Contains(message, " cannot watch resource ") && now.Sub(p.startTime) < watchCheckPeriod
	if !denied || !p.essential[schema.GroupResource{Group: details.Group, Resource: details.Kind}] {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	series := p.series[message]
	if now.Sub(series.last) > refusalWindow {
		series.first = now
	}
	series.last = now
	p.series[message] = series
	if now.Sub(series.first) >= p.gracePeriod {
		p.report(fmt.Errorf("missing permission: %s: apply the roles and bindings that come with the program", message))
	}
}
