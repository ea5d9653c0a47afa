package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/test/poll"
)

// slowClient delays the return of Watch until release is closed, as a slow network does.
type slowClient struct {
	*store
	release chan struct{}
}

func (c slowClient) RootPrefix() string { return "root" }
func (c slowClient) Close() error       { return nil }

func (c slowClient) Ensure(context.Context, meshetcd.Account) error { return nil }

func (c slowClient) Watch(ctx context.Context, prefix string, after int64, handle func([]meshetcd.Entry)) error {
	err := c.store.Watch(ctx, prefix, after, handle)
	<-c.release
	return err
}

// If a namespace is forgotten and ensured again, the end of its previous watches does not delete the metrics of the new ones.
func TestEnsureAfterForgetKeepsGauge(t *testing.T) {
	watchingGauge.Reset()
	f := newFixture(t)
	release := make(chan struct{})
	f.dial = func(map[string][]byte) (etcdClient, error) { return slowClient{newStore(), release}, nil }
	f.Ensure("fraud", "mesh")
	if err := f.Connect(map[string][]byte{"a": nil}); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	want := map[string]float64{"fraud/vmodels": 1, "fraud/registry": 1}
	poll.Until(t, 30*time.Second, "both watches work", func() bool { return maps.Equal(gaugeValues(t), want) })
	previous := f.namespaces["fraud"]
	f.Forget("fraud")
	f.Ensure("fraud", "mesh")
	close(release)
	<-previous.vmodels.done
	<-previous.registry.done
	poll.Until(t, 30*time.Second, "the gauge has a series for both watches", func() bool { return maps.Equal(gaugeValues(t), want) })
}

// floodingReader lists the keys from 0 to known-1, and sends the keys from 0 to keys-1 to a watch.
type floodingReader struct{ keys, known int }

func (r *floodingReader) List(_ context.Context, prefix string, _ bool) (meshetcd.Listing, error) {
	listing := meshetcd.Listing{Revision: 1, ClusterID: 1}
	for n := range r.known {
		listing.Entries = append(listing.Entries, meshetcd.Entry{Key: fmt.Sprintf("%s%d", prefix, n)})
	}
	return listing, nil
}

func (r *floodingReader) Watch(ctx context.Context, prefix string, _ int64, handle func([]meshetcd.Entry)) error {
	for n := range r.keys {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		handle([]meshetcd.Entry{{Key: fmt.Sprintf("%s%d", prefix, n), Revision: int64(n)}})
	}
	return errors.New("the watch was not cancelled")
}

// A watch ends with ErrTooLarge when more than MaxKeys keys are known. With MaxKeys known keys, changes of these keys do not end it.
func TestListAndWatchLimitsKeys(t *testing.T) {
	w := &prefixWatch{
		client: &floodingReader{keys: meshetcd.MaxKeys * 2}, prefix: "p/", gauge: watchingGauge.WithLabelValues("n", "p"), clock: clock.RealClock{}, log: logr.Discard(), notify: func(Event) {},
		parse: func(id string, _ []byte) (string, string, error) { return "", id, nil },
	}
	if err := w.listAndWatch(t.Context()); !errors.Is(err, meshetcd.ErrTooLarge) || len(w.known) > meshetcd.MaxKeys+1 {
		t.Errorf("%d known keys, error %v, want at most %d and ErrTooLarge", len(w.known), err, meshetcd.MaxKeys+1)
	}
	w.client = &floodingReader{keys: 2, known: meshetcd.MaxKeys}
	if err := w.listAndWatch(t.Context()); err == nil || errors.Is(err, meshetcd.ErrTooLarge) || len(w.known) != meshetcd.MaxKeys {
		t.Errorf("%d known keys, error %v, want %d and another error", len(w.known), err, meshetcd.MaxKeys)
	}
}

// Keys and owners that are too long for a model are not stored: a namespace can have its own etcd, which must not exhaust the memory of the
// operator.
func TestLongKeysAndOwnersAreNotStored(t *testing.T) {
	var notified []Event
	w := &prefixWatch{prefix: "p/", log: logr.Discard(), notify: func(e Event) { notified = append(notified, e) }, parse: parseVModel, known: map[string]knownKey{}}
	long := strings.Repeat("x", maxIDBytes+1)
	for key, value := range map[string]string{"p/" + long: "{}", "p/owner": `{"o":"` + long + `"}`, "p/model": `{"o":"isvc"}`} {
		w.handleEntry(meshetcd.Entry{Key: key, Value: []byte(value), Revision: 1})
	}
	if len(w.known) != 2 || len(notified) != 1 || notified[0].Name != "model" {
		t.Errorf("%d known keys, notifications %v, want two keys and the model", len(w.known), notified)
	}
}

// panickingReader is an etcdReader whose List panics.
type panickingReader struct{ *floodingReader }

func (panickingReader) List(context.Context, string, bool) (meshetcd.Listing, error) { panic("test") }

func TestPanicOfWatchIsAnError(t *testing.T) {
	w := &prefixWatch{client: panickingReader{}, prefix: "p/"}
	if err := w.listAndWatch(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "panic: test\n") {
		t.Errorf("error %v, want the panic", err)
	}
}
