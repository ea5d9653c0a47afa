package events

import (
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
)

// retryMin and retryMax bound the pauses after trouble; a watch that held for retryMax starts with the shortest again.
const retryMin, retryMax = time.Second, 30 * time.Second

// jitter is the part by which a pause is lengthened at random: all watches lose their connection at the same moment.
const jitter = 0.2

// reader is the part of the client of etcd that a watch needs.
type reader interface {
	List(ctx context.Context, prefix string, keysOnly bool) (meshetcd.Listing, error)
	Watch(ctx context.Context, prefix string, after int64, handle func([]meshetcd.Entry)) error
}

// watch follows one prefix. Whatever breaks it, it lists again: what went meanwhile is found by comparing with what it knew.
type watch struct {
	client   reader
	prefix   string
	keysOnly bool
	clock    clock.Clock
	log      logr.Logger
	emit     func(Event)
	// describe reads the event from the key behind the prefix and its value.
	describe func(id string, value []byte) (Event, error)

	known   map[string]seen // by the key behind the prefix
	cluster uint64
	warned  string
	// state shows whether the watch works.
	state prometheus.Gauge
	done  chan struct{} // closed when run has returned
}

// seen is what is known of a key.
type seen struct {
	revision int64
	event    *Event // nil where the entry says nothing that we understand
}

// inherit waits for the end of a former watch, which was asked for, and takes what it knew.
func (w *watch) inherit(former *watch) {
	if former != nil {
		<-former.done
		w.known, w.cluster = former.known, former.cluster
	}
}

// run follows the prefix until ctx ends.
func (w *watch) run(ctx context.Context) {
	pause := retryMin
	for {
		began := w.clock.Now()
		err := w.follow(ctx)
		if ctx.Err() != nil { // the end was asked for, whatever etcd says about it
			return
		}
		if w.clock.Since(began) > retryMax {
			pause = retryMin
		}
		w.state.Set(0)
		w.complain(err)
		select {
		case <-ctx.Done():
			return
		case <-w.clock.After(wait.Jitter(pause, jitter)):
		}
		pause = min(2*pause, retryMax)
	}
}

// complain logs each kind of trouble once in a row.
func (w *watch) complain(err error) {
	if text := err.Error(); text != w.warned {
		w.warned = text
		w.log.Info("The models of a namespace cannot be watched in etcd for now; it is tried again", "prefix", w.prefix, "reason", text)
	}
}

// follow lists, and watches from there on, until that breaks.
func (w *watch) follow(ctx context.Context) error {
	listing, err := w.client.List(ctx, w.prefix, w.keysOnly)
	if err != nil {
		return err
	}
	w.compare(listing)
	w.state.Set(1)
	if w.warned != "" {
		w.warned = ""
		w.log.Info("The models of a namespace are watched in etcd again", "prefix", w.prefix)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return w.client.Watch(ctx, w.prefix, listing.Revision, func(entries []meshetcd.Entry) {
		for _, entry := range entries {
			if len(w.known) >= meshetcd.MaxKeys && !entry.Deleted {
				cancel(meshetcd.ErrTooLarge)
				return
			}
			w.take(entry)
		}
	})
}

// compare takes a listing: what is new or changed, and what went. The first one, and one of another store, is news throughout.
func (w *watch) compare(listing meshetcd.Listing) {
	former, same := w.known, w.cluster == listing.ClusterID
	w.cluster, w.known = listing.ClusterID, make(map[string]seen, len(listing.Entries))
	for _, entry := range listing.Entries {
		id := w.id(entry)
		before, found := former[id]
		delete(former, id)
		if found && same && before.revision == entry.Revision {
			w.known[id] = before
			continue
		}
		w.written(entry, before)
	}
	for _, before := range former {
		w.gone(before)
	}
}

func (w *watch) id(entry meshetcd.Entry) string { return strings.TrimPrefix(entry.Key, w.prefix) }

// take takes one change.
func (w *watch) take(entry meshetcd.Entry) {
	before := w.known[w.id(entry)]
	if entry.Deleted {
		delete(w.known, w.id(entry))
		w.gone(before)
		return
	}
	w.written(entry, before)
}

// gone tells of what was there before. That of a concrete model says nothing about the vmodel, whose own entry tells.
func (w *watch) gone(before seen) {
	if before.event != nil && !w.keysOnly {
		w.emit(*before.event)
	}
}

// written remembers an entry and tells of it, and of who had it before when the owner changed.
func (w *watch) written(entry meshetcd.Entry, before seen) {
	id := w.id(entry)
	event, err := w.describe(id, entry.Value)
	if err != nil {
		w.known[id] = seen{revision: entry.Revision}
		w.log.Info("An entry of etcd is not understood and has no effect", "key", entry.Key, "reason", err.Error())
		w.gone(before)
		return
	}
	if before.event != nil && *before.event != event {
		w.gone(before)
	}
	w.known[id] = seen{revision: entry.Revision, event: &event}
	w.emit(event)
}
