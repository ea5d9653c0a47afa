package events

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// Delays after an error. An attempt to list and watch that ran for longer than maxBackoff resets the backoff.
const (
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
)

// maxIDBytes limits the parts of a key and of a value that are stored. A model ID has at most 253 bytes, the ID of a concrete model 270.
const maxIDBytes = 320

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
	// parse returns the source and the name of the model that an entry belongs to. id is the key without the prefix.
	parse     func(id string, value []byte) (source, name string, err error)
	namespace string

	known     map[string]knownKey // by key without the prefix
	clusterID uint64
	lastError string
	gauge     prometheus.Gauge
	done      chan struct{} // closed when run has returned
}

// knownKey is the last known version of a key.
type knownKey struct {
	revision int64
	event    *Event // nil for an invalid entry
}

// copyState waits until the previous watch, whose context is cancelled, has ended, and copies its known keys.
func (p *prefixWatch) copyState(previous *prefixWatch) {
	if previous != nil {
		<-previous.done
		p.known, p.clusterID = previous.known, previous.clusterID
	}
}

// run watches the prefix until ctx is done.
func (p *prefixWatch) run(ctx context.Context) {
	delay := minBackoff
	for {
		startTime := p.clock.Now()
		err := p.listAndWatch(ctx)
		if ctx.Err() != nil {
			return
		}
		if p.clock.Since(startTime) > maxBackoff {
			delay = minBackoff
		}
		p.gauge.Set(0)
		p.logError(err)
		select {
		case <-ctx.Done():
			return
		case <-p.clock.After(wait.Jitter(delay, jitter)):
		}
		delay = min(2*delay, maxBackoff)
	}
}

// logError logs an error unless it equals the last logged error.
func (p *prefixWatch) logError(err error) {
	if text := err.Error(); text != p.lastError {
		p.lastError = text
		p.log.Info("Watching the models of a namespace in etcd failed; retrying", "prefix", p.prefix, "reason", text)
	}
}

// listAndWatch lists the keys and watches them from the revision of the list until an error.
func (p *prefixWatch) listAndWatch(ctx context.Context) (err error) {
	defer func() {
		if problem := recover(); problem != nil { // a panic must not end the watches of other namespaces
			err = fmt.Errorf("panic: %v\n%s", problem, debug.Stack())
		}
	}()
	listing, err := p.client.List(ctx, p.prefix, p.keysOnly)
	if err != nil {
		return err
	}
	p.handleListing(listing)
	p.gauge.Set(1)
	if p.lastError != "" {
		p.lastError = ""
		p.log.Info("The models of a namespace are watched in etcd again", "prefix", p.prefix)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return p.client.Watch(ctx, p.prefix, listing.Revision, func(entries []meshetcd.Entry) {
		for _, entry := range entries {
			if p.handleEntry(entry); len(p.known) > meshetcd.MaxKeys {
				cancel(meshetcd.ErrTooLarge)
				return
			}
		}
	})
}

// handleListing handles new, changed and deleted keys. In the first list, and in that of another etcd cluster, all keys are new.
func (p *prefixWatch) handleListing(listing meshetcd.Listing) {
	lastKnown, isSameCluster := p.known, p.clusterID == listing.ClusterID
	p.clusterID, p.known = listing.ClusterID, make(map[string]knownKey, len(listing.Entries))
	for _, entry := range listing.Entries {
		id := strings.TrimPrefix(entry.Key, p.prefix)
		previous, found := lastKnown[id]
		delete(lastKnown, id)
		if found && isSameCluster && previous.revision == entry.Revision {
			p.known[id] = previous
			continue
		}
		p.onPut(id, entry, previous)
	}
	for _, previous := range lastKnown {
		p.onDelete(previous)
	}
}

// handleEntry handles one change of a watch.
func (p *prefixWatch) handleEntry(entry meshetcd.Entry) {
	id := strings.TrimPrefix(entry.Key, p.prefix)
	previous := p.known[id]
	if entry.Deleted {
		delete(p.known, id)
		p.onDelete(previous)
		return
	}
	p.onPut(id, entry, previous)
}

// onDelete notifies of a deleted vmodel. It ignores a deleted concrete model, because the key of its vmodel changes too.
func (p *prefixWatch) onDelete(previous knownKey) {
	if previous.event != nil && !p.keysOnly {
		p.notify(*previous.event)
	}
}

// onPut stores an entry and notifies of its model and, if it differs, of the previous model. An invalid entry has no model.
func (p *prefixWatch) onPut(id string, entry meshetcd.Entry, previous knownKey) {
	if len(id) > maxIDBytes {
		p.log.Info("Ignoring an entry of etcd whose key is too long for a model", "key", redact.Clip(entry.Key, maxIDBytes), "bytes", len(entry.Key))
		return
	}
	source, name, err := p.parse(id, entry.Value)
	if err == nil && len(source) > maxIDBytes {
		err = fmt.Errorf("the owner of a vmodel has %d bytes: use at most %d", len(source), maxIDBytes)
	}
	if err != nil {
		p.known[id] = knownKey{revision: entry.Revision}
		p.log.Info("Ignoring an invalid entry of etcd", "key", entry.Key, "reason", err.Error())
		p.onDelete(previous)
		return
	}
	event := Event{Source: source, Namespace: p.namespace, Name: name}
	if previous.event != nil && *previous.event != event {
		p.onDelete(previous)
	}
	p.known[id] = knownKey{revision: entry.Revision, event: &event}
	p.notify(event)
}
