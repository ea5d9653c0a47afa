package singleton

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/test/poll"
)

var resource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func object(name, value string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"k": value}}}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	u.SetNamespace("here")
	u.SetName(name)
	return u
}

type fixture struct {
	client                   *fake.FakeDynamicClient
	clock                    *clocktesting.FakeClock
	watcher                  *Watcher
	lists, logs, unavailable atomic.Int32
	listErr                  atomic.Pointer[error]
	value                    atomic.Pointer[string] // last value passed to OnUpdate; empty without an object
}

func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	f := &fixture{clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	f.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "ConfigMapList"}, objects...)
	f.client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		f.lists.Add(1)
		if err := f.listErr.Load(); err != nil {
			return true, nil, *err
		}
		return false, nil, nil
	})
	f.watcher = New(Options{
		Client: f.client.Resource(resource).Namespace("here"), Resource: resource.GroupResource(), Name: "settings", Clock: f.clock,
		Log: funcr.New(func(string, string) { f.logs.Add(1) }, funcr.Options{}),
		OnUpdate: func(u *unstructured.Unstructured) {
			value := ""
			if u != nil {
				value, _, _ = unstructured.NestedString(u.Object, "data", "k")
			}
			f.value.Store(&value)
		},
		OnUnavailable: func() { f.unavailable.Add(1) },
	})
	return f
}

func (f *fixture) start(t *testing.T) *fixture {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.watcher.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start returned error %v", err)
		}
	})
	return f
}

func (f *fixture) waitForValue(t *testing.T, value string) {
	t.Helper()
	poll.Until(t, 10*time.Second, "OnUpdate is called with value "+value, func() bool { v := f.value.Load(); return v != nil && *v == value })
}

func TestWatcherReportsChanges(t *testing.T) {
	f := newFixture(t, object("settings", "one"), object("other", "never")).start(t)
	if f.lists.Load() != 0 {
		t.Error("requests were sent before the API was served")
	}
	f.watcher.SetServed(true)
	f.waitForValue(t, "one")
	poll.Until(t, 10*time.Second, "the watch runs", func() bool { return len(f.client.Actions()) >= 2 })

	client := f.client.Resource(resource).Namespace("here")
	if _, err := client.Update(t.Context(), object("settings", "two"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.waitForValue(t, "two")
	if _, err := client.Update(t.Context(), object("other", "still never"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), "settings", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.waitForValue(t, "")
	if _, err := client.Create(t.Context(), object("settings", "three"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.waitForValue(t, "three")
	if got := f.lists.Load(); got != 1 {
		t.Errorf("%d lists, want 1, because changes are watched", got)
	}
}

func TestErrorsAreRetriedAfterMinBackoff(t *testing.T) {
	group := resource.GroupResource()
	for name, tc := range map[string]struct {
		err              error
		unavailableCalls int32
	}{
		"forbidden":    {apierrors.NewForbidden(group, "settings", errors.New("no")), 1},
		"unauthorized": {apierrors.NewUnauthorized("who"), 1},
		"not served":   {apierrors.NewNotFound(group, ""), 0},
		"status 503":   {apierrors.NewServiceUnavailable("starting"), 0},
		"timeout":      {context.DeadlineExceeded, 0},
		"other":        {errors.New("connection refused"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, object("settings", "one"))
			f.listErr.Store(&tc.err)
			f.start(t).watcher.SetServed(true)
			poll.Until(t, 10*time.Second, "the list failed and the backoff runs", func() bool { return f.lists.Load() == 1 && f.clock.HasWaiters() })
			if got := f.unavailable.Load(); got != tc.unavailableCalls {
				t.Errorf("OnUnavailable was called %d times, want %d", got, tc.unavailableCalls)
			}
			if f.logs.Load() != 1 || f.value.Load() != nil {
				t.Errorf("%d log lines, value %v; want one line and no call of OnUpdate", f.logs.Load(), f.value.Load())
			}
			f.listErr.Store(nil)
			f.clock.Step(minBackoff)
			f.waitForValue(t, "one")
		})
	}
}

// API servers serve a new CRD at different times: NotFound is retried, and permanent only after the grace period.
func TestNotFoundIsRetriedInGracePeriod(t *testing.T) {
	reported := 0
	w := New(Options{Resource: resource.GroupResource(), Name: "settings", Log: logr.Discard(), OnUnavailable: func() { reported++ }})
	missing := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", w.Resource, "", "404 page not found", 0, true)
	backoff, elapsed := time.Duration(0), time.Duration(0)
	for reported == 0 {
		if backoff = w.nextDelay(missing, backoff); backoff > maxBackoff {
			t.Fatalf("the next attempt is in %s", backoff)
		}
		elapsed += backoff
	}
	if elapsed -= backoff; elapsed < 5*time.Second || elapsed > 30*time.Second { // the last backoff follows OnUnavailable
		t.Errorf("OnUnavailable was called after %s, want between 5s and 30s", elapsed)
	}
}

// An API server that has just started denies all requests until it has loaded the roles. Until then, the last object stays in effect.
func TestForbiddenIsRetriedInGracePeriod(t *testing.T) {
	reported := 0
	w := New(Options{Resource: resource.GroupResource(), Name: "settings", Log: logr.Discard(), OnUnavailable: func() { reported++ }})
	w.listed.Store(true)
	forbidden := apierrors.NewForbidden(w.Resource, "settings", errors.New("no"))
	backoff, elapsed := time.Duration(0), time.Duration(0)
	for range 5 {
		backoff = w.nextDelay(errors.New("connection refused"), backoff)
	}
	for reported == 0 {
		backoff = w.nextDelay(forbidden, backoff)
		if elapsed += backoff; elapsed > time.Minute {
			t.Fatal("Forbidden was not reported within a minute")
		}
	}
	if elapsed-backoff < 15*time.Second {
		t.Errorf("OnUnavailable was called after %s, want at least 15s", elapsed-backoff)
	}
	for range 10 {
		backoff = w.nextDelay(forbidden, backoff)
	}
	if backoff != forbiddenBackoff {
		t.Errorf("the last backoff is %s, want %s", backoff, forbiddenBackoff)
	}
}

func TestWatcherLogsErrorOnce(t *testing.T) {
	f := newFixture(t).start(t)
	refused := errors.New("connection refused")
	f.listErr.Store(&refused)
	f.watcher.SetServed(true)
	backoff := minBackoff
	for n := int32(1); n <= 8; n++ {
		poll.Until(t, 10*time.Second, "the backoff of the next attempt runs", func() bool { return f.lists.Load() == n && f.clock.HasWaiters() })
		f.clock.Step(backoff - time.Millisecond)
		if !f.clock.HasWaiters() {
			t.Fatalf("attempt %d was made before the backoff ended", n+1)
		}
		f.clock.Step(time.Millisecond)
		backoff = min(2*backoff, maxBackoff)
	}
	if got := f.logs.Load(); got != 1 {
		t.Errorf("%d log lines for a repeated error, want 1", got)
	}
}

func TestHandleEvent(t *testing.T) {
	f := newFixture(t)
	expired := apierrors.NewResourceExpired("too old").Status()
	if err := f.watcher.handleEvent(watch.Event{Type: watch.Error, Object: &expired}); !apierrors.IsResourceExpired(err) {
		t.Errorf("error %v, want the error of the watch event", err)
	}
	for _, event := range []watch.Event{
		{Type: watch.Bookmark, Object: object("settings", "bookmark")},
		{Type: watch.Added, Object: object("other", "other")},
	} {
		if err := f.watcher.handleEvent(event); err != nil || f.value.Load() != nil {
			t.Errorf("%s %v: error %v, value %v", event.Type, event.Object, err, f.value.Load())
		}
	}
}

func TestSetServedNeverBlocks(t *testing.T) {
	w := newFixture(t).watcher
	for range 3 {
		w.SetServed(true)
	}
	w.SetServed(false)
	if <-w.served {
		t.Error("want the latest value of SetServed to win")
	}
	if w.NeedLeaderElection() {
		t.Error("NeedLeaderElection reports true, although standby replicas watch the object")
	}
}

func TestReadOnceListsUntilItSucceeds(t *testing.T) {
	f := newFixture(t, object("settings", "one"))
	refused := errors.New("refused")
	f.listErr.Store(&refused)
	if err := f.watcher.ReadOnce(t.Context()); !errors.Is(err, refused) || f.value.Load() != nil {
		t.Errorf("got error %v, want %v and no call of OnUpdate", err, refused)
	}
	f.listErr.Store(nil)
	for range 2 {
		if err := f.watcher.ReadOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.lists.Load(); got != 2 || *f.value.Load() != "one" {
		t.Errorf("got %d lists and value %q, want one list that failed, one list, and value one", got, *f.value.Load())
	}
	f.start(t).watcher.SetServed(true)
	poll.Until(t, 10*time.Second, "Start lists too", func() bool { return f.lists.Load() == 3 })
}
