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

// Pauses after an error. A watch that ran for longer than maxBackoff resets the backoff.
const (
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
)

// jitter spreads the retries, because all watches lose their connection at the same time.
const jitter = 0.2

// etcdReader is the subset of the etcd client that prefixWatch uses.
type etcdReader interface {
	List(ctx context.Context, prefix string, keysOnly bool) (meshetcd.Listing, error)
	Watch(ctx context.Context, prefix string, after int64, handle func([]meshetcd.Entry)) error
}

// prefixWatch watches the keys of one prefix. After an error it lists the keys and compares them with the known ones.
type prefixWatch struct {
	client   etcdReader
	prefix   string
	keysOnly bool
	clock    clock.Clock
	log      logr.Logger
	notify   func(Event)
	// parseEvent returns the event for a key, relative to the prefix, and its value.
	parseEvent func(id string, value []byte) (Event, error)

	known     map[string]knownKey // by the key behind the prefix
	clusterID uint64
	lastError string
	gauge     prometheus.Gauge
	done      chan struct{} // closed when run has returned
}

// knownKey is the last version of a key.
type knownKey struct {
	revision int64
	event    *Event // nil if parseEvent failed
}

// copyState waits until the previous watch, whose context is cancelled, has ended, and copies its known keys.
func (w *prefixWatch) copyState(previous *prefixWatch) {
	if previous != nil {
		<-previous.done
		w.known, w.clusterID = previous.known, previous.clusterID
	}
}

// run watches the prefix until ctx is done.
func (w *prefixWatch) run(ctx context.Context) {
	pause := minBackoff
	for {
		began := w.clock.Now()
		err := w.listAndWatch(ctx)
		if ctx.Err() != nil {
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

// logError logs an error unless it equals the last one.
func (w *prefixWatch) logError(err error) {
	if text := err.Error(); text != w.lastError {
		w.lastError = text
		w.log.Info("Watching the models of a namespace in etcd failed; retrying", "prefix", w.prefix, "reason", text)
	}
}

// listAndWatch lists the keys and watches them from the revision of the list until an error.
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
				cancel(meshetcd.ErrTooLarge)
				return
			}
			w.handleEntry(entry)
		}
	})
}

// handleListing notifies of new, changed and deleted keys. For the first list, and for another etcd cluster, all keys are new.
func (w *prefixWatch) handleListing(listing meshetcd.Listing) {
	lastKnown, same := w.known, w.clusterID == listing.ClusterID
	w.clusterID, w.known = listing.ClusterID, make(map[string]knownKey, len(listing.Entries))
	for _, entry := range listing.Entries {
		id := w.relativeKey(entry)
		previous, found := lastKnown[id]
		delete(lastKnown, id)
		if found && same && previous.revision == entry.Revision {
			w.known[id] = previous
			continue
		}
		w.onPut(entry, previous)
	}
	for _, previous := range lastKnown {
		w.onDelete(previous)
	}
}

func (w *prefixWatch) relativeKey(entry meshetcd.Entry) string {
	return strings.TrimPrefix(entry.Key, w.prefix)
}

// handleEntry handles one change of a watch.
func (w *prefixWatch) handleEntry(entry meshetcd.Entry) {
	previous := w.known[w.relativeKey(entry)]
	if entry.Deleted {
		delete(w.known, w.relativeKey(entry))
		w.onDelete(previous)
		return
	}
	w.onPut(entry, previous)
}

// onDelete notifies of a deleted vmodel. A deleted concrete model is no event: the key of its vmodel has its own.
func (w *prefixWatch) onDelete(previous knownKey) {
	if previous.event != nil && !w.keysOnly {
		w.notify(*previous.event)
	}
}

// onPut stores an entry and notifies of its model, and of the model of the previous owner if the owner changed.
func (w *prefixWatch) onPut(entry meshetcd.Entry, previous knownKey) {
	id := w.relativeKey(entry)
	event, err := w.parseEvent(id, entry.Value)
	if err != nil {
		w.known[id] = knownKey{revision: entry.Revision}
		w.log.Info("Ignoring an invalid entry of etcd", "key", entry.Key, "reason", err.Error())
		w.onDelete(previous)
		return
	}
	if previous.event != nil && *previous.event != event {
		w.onDelete(previous)
	}
	w.known[id] = knownKey{revision: entry.Revision, event: &event}
	w.notify(event)
}
