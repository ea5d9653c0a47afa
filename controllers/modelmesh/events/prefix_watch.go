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
const minBackoff, maxBackoff = time.Second, 30 * time.Second

// jitter is the part by which a pause is lengthened at random: all watches lose their connection at the same moment.
const jitter = 0.2

// reader is the part of the client of etcd that a watch needs.
type etcdReader interface {
	List(ctx context.Context, prefix string, keysOnly bool) (meshetcd.Listing, error)
	Watch(ctx context.Context, prefix string, after int64, handle func([]meshetcd.Entry)) error
}

// watch follows one prefix. Whatever breaks it, it lists again: what went meanwhile is found by comparing with what it knew.
type prefixWatch struct {
	client   etcdReader
	prefix   string
	keysOnly bool
	clock    clock.Clock
	log      logr.Logger
	notify   func(Event)
	// describe reads the event from the key behind the prefix and its value.
	parseEvent func(id string, value []byte) (Event, error)

	known     map[string]knownKey // by the key behind the prefix
	clusterID uint64
	lastError string
	// state shows whether the watch works.
	gauge prometheus.Gauge
	done  chan struct{} // closed when run has returned
}

// seen is what is known of a key.
type knownKey struct {
	revision int64
	event    *Event // nil where the entry says nothing that we understand
}

// inherit waits for the end of a former watch, which was asked for, and takes what it knew.
func (w *prefixWatch) copyState(former *prefixWatch) {
	if former != nil {
		<-former.done
		w.known, w.clusterID = former.known, former.clusterID
	}
}

// run follows the prefix until ctx ends.
func (w *prefixWatch) run(ctx context.Context) {
	pause := minBackoff
	for {
		began := w.clock.Now()
		err := w.listAndWatch(ctx)
		if ctx.Err() != nil { // the end was asked for, whatever etcd says about it
			return
		}
		if w.clock.Since(began) > maxBackoff {
			pause = minBackoff
		}
		w.gauge.Set(0)
		w.logError(err)
		select {
		case <-ctx.Done():
			return
		case <-w.clock.After(wait.Jitter(pause, jitter)):
		}
		pause = min(2*pause, maxBackoff)
	}
}

// complain logs each kind of trouble once in a row.
func (w *prefixWatch) logError(err error) {
	if text := err.Error(); text != w.lastError {
		w.lastError = text
		w.log.Info("The models of a namespace cannot be watched in etcd for now; it is tried again", "prefix", w.prefix, "reason", text)
	}
}

// follow lists, and watches from there on, until that breaks.
func (w *prefixWatch) listAndWatch(ctx context.Context) error {
	listing, err := w.client.List(ctx, w.prefix, w.keysOnly)
	if err != nil {
		return err
	}
	w.handleListing(listing)
	w.gauge.Set(1)
	if w.lastError != "" {
		w.lastError = ""
		w.log.Info("The models of a namespace are watched in etcd again", "prefix", w.prefix)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return w.client.Watch(ctx, w.prefix, listing.Revision, func(entries []meshetcd.Entry) {
		for _, entry := range entries {
			if len(w.known) >= meshetcd.MaxKeys && !entry.Deleted {
				cancel(meshetcd.ErrTooMuch)
				return
			}
			w.handleEntry(entry)
		}
	})
}

// compare takes a listing: what is new or changed, and what went. The first one, and one of another store, is news throughout.
func (w *prefixWatch) handleListing(listing meshetcd.Listing) {
	former, same := w.known, w.clusterID == listing.Cluster
	w.clusterID, w.known = listing.Cluster, make(map[string]knownKey, len(listing.Entries))
	for _, entry := range listing.Entries {
		id := w.relativeKey(entry)
		before, found := former[id]
		delete(former, id)
		if found && same && before.revision == entry.Revision {
			w.known[id] = before
			continue
		}
		w.onPut(entry, before)
	}
	for _, before := range former {
		w.onDelete(before)
	}
}

func (w *prefixWatch) relativeKey(entry meshetcd.Entry) string {
	return strings.TrimPrefix(entry.Key, w.prefix)
}

// take takes one change.
func (w *prefixWatch) handleEntry(entry meshetcd.Entry) {
	before := w.known[w.relativeKey(entry)]
	if entry.Deleted {
		delete(w.known, w.relativeKey(entry))
		w.onDelete(before)
		return
	}
	w.onPut(entry, before)
}

// gone tells of what was there before. That of a concrete model says nothing about the vmodel, whose own entry tells.
func (w *prefixWatch) onDelete(before knownKey) {
	if before.event != nil && !w.keysOnly {
		w.notify(*before.event)
	}
}

// written remembers an entry and tells of it, and of who had it before when the owner changed.
func (w *prefixWatch) onPut(entry meshetcd.Entry, before knownKey) {
	id := w.relativeKey(entry)
	event, err := w.parseEvent(id, entry.Value)
	if err != nil {
		w.known[id] = knownKey{revision: entry.Revision}
		w.log.Info("An entry of etcd is not understood and has no effect", "key", entry.Key, "reason", err.Error())
		w.onDelete(before)
		return
	}
	if before.event != nil && *before.event != event {
		w.onDelete(before)
	}
	w.known[id] = knownKey{revision: entry.Revision, event: &event}
	w.notify(event)
}
