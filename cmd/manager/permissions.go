package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// refusalsBorne is how long refusals are tried again: an API server that has just started refuses everything until it has read the
	// roles, which takes seconds.
	refusalsBorne = 15 * time.Second
	// refusalsApart is more than informers pause between two attempts: refusals that are further apart do not belong together.
	refusalsApart = 2 * time.Minute
	// start is how long a refused watch counts after a list that was allowed: those of later are met by retries.
	start = 5 * time.Minute
)

// permissions ends a start for which an essential permission is missing. It sees what the API server answers to the informers, and needs
// no request of its own, unlike access reviews, which would be five writes at every start. Only a list or watch that an authorizer
// refuses counts: no object of a tenant can bring that about. A resource that was listed once is of no more interest: roles that
// change later are met by retries, not by an exit.
type permissions struct {
	essential map[schema.GroupResource]bool
	report    context.CancelCauseFunc
	clock     clock.PassiveClock
	borne     time.Duration // after which a refusal is reported
	began     time.Time

	mu       sync.Mutex
	refusals map[string]refusals // by the words of the API server
}

// refusals are those that belong together.
type refusals struct{ first, last time.Time }

// essentials are the resources that the manager cannot work without: a start without permission to list and watch them ends with a
// message instead of waiting for ever.
func essentials(enabled []row) map[schema.GroupResource]bool {
	out := map[schema.GroupResource]bool{}
	for _, r := range enabled {
		for _, kind := range slices.Concat(r.Requires, r.Essential) {
			resource, _ := meta.UnsafeGuessKindToResource(kind) // which is right for our kinds
			out[resource.GroupResource()] = true
		}
	}
	return out
}

// handle fits DefaultWatchErrorHandler of the cache.
func (p *permissions) handle(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	p.judge(err, reflector.LastSyncResourceVersion() != "")
}

// judge reports a refusal that lasts. The words are those of the API server for what no authorizer allows; the Status has no field that
// tells it from other refusals.
func (p *permissions) judge(err error, listed bool) {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return
	}
	text, details := status.Status().Message, status.Status().Details
	now := p.clock.Now()
	refused := !listed && strings.Contains(text, " cannot list resource ") || strings.Contains(text, " cannot watch resource ") && now.Sub(p.began) < start
	if !refused || !p.essential[schema.GroupResource{Group: details.Group, Resource: details.Kind}] {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	spell := p.refusals[text]
	if now.Sub(spell.last) > refusalsApart {
		spell.first = now
	}
	spell.last = now
	p.refusals[text] = spell
	if now.Sub(spell.first) >= p.borne {
		p.report(fmt.Errorf("missing permission: %s: apply the roles and bindings that come with the program", text))
	}
}
