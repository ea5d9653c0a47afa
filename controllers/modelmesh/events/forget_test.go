package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/test/poll"
)

// lingering delays the end of a watch until it is released, as a network does.
type lingering struct {
	*store
	let chan struct{}
}

func (l lingering) RootPrefix() string { return "root" }
func (l lingering) Close() error       { return nil }

func (l lingering) Ensure(context.Context, meshetcd.Account) error { return nil }

func (l lingering) Watch(ctx context.Context, prefix string, after int64, handle func([]meshetcd.Entry)) error {
	err := l.store.Watch(ctx, prefix, after, handle)
	<-l.let
	return err
}

// A namespace whose label is removed and added again is still reported as watched: the end of the previous watches deletes no metric.
func TestEnsureAfterForgetKeepsGauge(t *testing.T) {
	watchingGauge.Reset()
	f := newFixture(t)
	let := make(chan struct{})
	f.dial = func(map[string][]byte) (etcdClient, error) { return lingering{newStore(), let}, nil }
	f.Ensure("fraud", "mesh")
	if err := f.Connect(map[string][]byte{"a": nil}); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	want := map[string]float64{"fraud/vmodels": 1, "fraud/registry": 1}
	poll.Until(t, 30*time.Second, "both watches work", func() bool { return maps.Equal(gaugeValues(t), want) })
	former := f.namespaces["fraud"]
	f.Forget("fraud")
	f.Ensure("fraud", "mesh")
	close(let)
	<-former.vmodels.done
	<-former.registry.done
	poll.Until(t, 30*time.Second, "both watches are shown", func() bool { return maps.Equal(gaugeValues(t), want) })
}

// flood sends an endless sequence of new keys.
type flood struct{ most int }

func (f *flood) List(context.Context, string, bool) (meshetcd.Listing, error) {
	return meshetcd.Listing{Revision: 1, ClusterID: 1}, nil
}

func (f *flood) Watch(ctx context.Context, prefix string, _ int64, handle func([]meshetcd.Entry)) error {
	for n := range f.most {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		handle([]meshetcd.Entry{{Key: fmt.Sprintf("%s%d", prefix, n), Revision: int64(n)}})
	}
	return errors.New("no end")
}

// The number of known keys is bounded, independent of the etcd.
func TestKnownKeysAreBounded(t *testing.T) {
	w := &prefixWatch{
		client: &flood{meshetcd.MaxKeys * 2}, prefix: "p/", gauge: watchingGauge.WithLabelValues("n", "p"), clock: clock.RealClock{}, log: logr.Discard(), notify: func(Event) {},
		parse: func(id string, _ []byte) (string, string, error) { return "", id, nil },
	}
	if err := w.listAndWatch(t.Context()); !errors.Is(err, meshetcd.ErrTooLarge) || len(w.known) > meshetcd.MaxKeys {
		t.Errorf("%d keys: %v", len(w.known), err)
	}
}
