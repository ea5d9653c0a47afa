package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// storms returns faults of the connection between the manager and the API server.
func storms() []scenario {
	clientFault, partition := []string{"ClientFault"}, []string{"NetworkPartition"}
	var all []scenario
	add := func(name, fault string, injections []string, bound time.Duration, rules ...rule) {
		all = append(all, scenario{name: name, run: func(c *campaign, ctx context.Context) error {
			return c.disturb(ctx, disturbance{name: name, fault: fault, injections: injections, duration: stormTime, bound: bound, proxied: true, begin: c.withRules(rules...)})
		}})
	}
	add("partition", "all traffic is dropped, including watches", partition, slow,
		rule{fault: dropPackets, streams: true})
	add("resets", "the connection of each new request is reset", partition, slow,
		rule{fault: resetConnection})
	add("latency", "every request except watches takes 2 s longer", clientFault, restarted,
		rule{match: match{verbs: notWatch}, fault: delay(2 * time.Second)})
	for _, code := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		text := http.StatusText(code)
		add(strings.ToLower(strings.ReplaceAll(text, " ", "-")), "half of all requests return "+text, clientFault, slow,
			rule{share: 0.5, fault: respond(code)})
	}
	add("conflicts", "half of the writes return Conflict", clientFault, slow,
		rule{match: match{writes: true}, share: 0.5, fault: respond(409)})
	add("done-then-504", "half of the writes succeed and return Gateway Timeout", clientFault, slow,
		rule{match: match{writes: true}, share: 0.5, fault: executeThen(respond(504))})
	add("done-then-reset", "half of the writes succeed, and their response is lost", clientFault, slow,
		rule{match: match{writes: true}, share: 0.5, fault: executeThen(resetConnection)})
	add("storm", "a tenth each of 429, 500, 503, 409, reset, and a lost response", clientFault, slow,
		rule{share: 0.1, fault: respond(429)}, rule{share: 0.1, fault: respond(500)}, rule{share: 0.1, fault: respond(503)},
		rule{match: match{writes: true}, share: 0.1, fault: respond(409)}, rule{share: 0.1, fault: resetConnection},
		rule{match: match{writes: true}, share: 0.1, fault: executeThen(resetConnection)})
	add("outage", "nine of ten requests return Service Unavailable", clientFault, slow,
		rule{share: 0.9, fault: respond(503)})
	add("late-watches", "watch events are held back until the fault ends", clientFault, slow,
		rule{match: watches(), fault: dropPackets, streams: true})
	return append(all, scenario{name: "dropped-watches", run: (*campaign).dropWatches}, scenario{name: "gone", run: (*campaign).expireWatches},
		scenario{name: "api-server-restart", run: (*campaign).restartAPIServer})
}

const (
	// stormTime is the duration of a storm.
	stormTime = 10 * time.Second
	// prompt is the bound of faults that need no wait.
	prompt = time.Second
	// restarted is the bound of faults after which a process or pods start.
	restarted = 10 * time.Second
	// slow is the bound of faults after which clients back off: client-go waits for up to 30 s between watches.
	slow = 35 * time.Second
)

var notWatch = []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"}

// withRules returns a begin function that adds rules to the proxy.
func (c *campaign) withRules(rules ...rule) func(context.Context) (func(context.Context) error, error) {
	return func(context.Context) (func(context.Context) error, error) {
		for _, r := range rules {
			c.proxy.addRule(r)
		}
		return func(context.Context) error {
			c.proxy.removeRules()
			return nil
		}, nil
	}
}

var errNoWatch = errors.New("the manager has no watch")

// dropWatches ends all watches once per second.
func (c *campaign) dropWatches(ctx context.Context) error {
	return c.disturb(ctx, disturbance{name: "dropped-watches", fault: "all watches end every second", injections: []string{"ClientFault"}, bound: slow,
		begin: func(ctx context.Context) (func(context.Context) error, error) {
			closed := 0
			for range int(stormTime / time.Second) {
				closed += c.proxy.closeWatches(watches())
				if err := c.pause(ctx, time.Second); err != nil {
					return nil, err
				}
			}
			if closed == 0 {
				return nil, errNoWatch
			}
			return nil, nil
		}})
}

// expireWatches ends all watches with 410 Gone, after which clients list again.
func (c *campaign) expireWatches(ctx context.Context) error {
	return c.disturb(ctx, disturbance{name: "gone", fault: "all watches end with 410 Gone", injections: []string{"ClientFault"}, duration: time.Second, bound: slow, proxied: true,
		begin: func(context.Context) (func(context.Context) error, error) {
			removeRule := c.proxy.addRule(rule{match: watches(), fault: expireWatch})
			c.proxy.closeWatches(watches())
			return func(context.Context) error { removeRule(); return nil }, nil
		}})
}
