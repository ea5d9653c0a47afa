package tlsprofile

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/test/poll"
)

type fixture struct {
	listener *Listener
	client   *fake.FakeDynamicClient
	clock    *clocktesting.FakeClock
	watcher  *Watcher
	lists    atomic.Int32
	logs     atomic.Int32
	fail     atomic.Pointer[error]
	changed  atomic.Int32
}

func start(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	f := &fixture{listener: NewListener(), clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	f.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "APIServerList"}, objects...)
	f.client.PrependReactor("list", "apiservers", func(clienttesting.Action) (bool, runtime.Object, error) {
		f.lists.Add(1)
		if err := f.fail.Load(); err != nil {
			return true, nil, *err
		}
		return false, nil, nil
	})
	log := funcr.New(func(string, string) { f.logs.Add(1) }, funcr.Options{})
	f.watcher = NewWatcher(Options{
		Listener: f.listener, Client: f.client, Clock: f.clock, Log: log, PodsChanged: func() { f.changed.Add(1) },
	})
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

func (f *fixture) failWith(err error) {
	if err == nil {
		f.fail.Store(nil)
		return
	}
	f.fail.Store(&err)
}

func (f *fixture) inForce(t *testing.T, name string) {
	t.Helper()
	poll.Until(t, 10*time.Second, name+" is in force", func() bool { return f.listener.Current().Name == name })
}

func TestWatcherPicksUpChangesLive(t *testing.T) {
	f := start(t, apiServer(map[string]any{"type": "Modern"}))
	if f.lists.Load() != 0 {
		t.Error("requests were sent although config.openshift.io is not served")
	}
	f.watcher.SetServed(true)
	f.inForce(t, "Modern")
	poll.Until(t, 10*time.Second, "the watch runs", func() bool { return len(f.client.Actions()) >= 2 })

	client := f.client.Resource(resource)
	if _, err := client.Update(t.Context(), apiServer(map[string]any{"type": "Old"}), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.inForce(t, "Old")
	if err := client.Delete(t.Context(), "cluster", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.inForce(t, "Intermediate")
	if _, err := client.Create(t.Context(), apiServer(map[string]any{"type": "Modern"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.inForce(t, "Modern")
	if got := f.lists.Load(); got != 1 {
		t.Errorf("%d lists, want 1: changes come by watch", got)
	}
}

// [D38] A profile that cannot be read, for any reason, means Intermediate and never the end of the process.
func TestWatcherSurvivesEveryError(t *testing.T) {
	group := schema.GroupResource{Group: "config.openshift.io", Resource: "apiservers"}
	for name, tc := range map[string]struct {
		err   error
		pause time.Duration
	}{
		"forbidden":   {err: apierrors.NewForbidden(group, "cluster", errors.New("no")), pause: 10 * time.Minute},
		"not served":  {err: apierrors.NewNotFound(group, ""), pause: 10 * time.Minute},
		"unavailable": {err: apierrors.NewServiceUnavailable("starting"), pause: time.Second},
		"timeout":     {err: context.DeadlineExceeded, pause: time.Second},
		"other error": {err: errors.New("connection refused"), pause: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, apiServer(map[string]any{"type": "Modern"}))
			f.failWith(tc.err)
			f.watcher.SetServed(true)
			poll.Until(t, 10*time.Second, "it was asked and waits", func() bool { return f.lists.Load() == 1 && f.clock.HasWaiters() })
			if got := f.listener.Current().Name; got != "Intermediate" {
				t.Errorf("%s is in force, want Intermediate", got)
			}
			if f.logs.Load() == 0 {
				t.Error("no warning was logged")
			}
			f.failWith(nil)
			f.clock.Step(tc.pause)
			f.inForce(t, "Modern")
		})
	}
}

// strict makes all components follow the profile of an APIServer.
func strict(obj *unstructured.Unstructured, policy string) *unstructured.Unstructured {
	obj.Object["spec"].(map[string]any)["tlsAdherence"] = policy
	return obj
}

func TestWatcherReportsAnotherProfileForPods(t *testing.T) {
	f := start(t, apiServer(map[string]any{"type": "Modern"}))
	f.watcher.SetServed(true)
	f.inForce(t, "Modern")
	poll.Until(t, 10*time.Second, "the watch runs", func() bool { return len(f.client.Actions()) >= 2 })
	if got := f.changed.Load(); got != 0 {
		t.Errorf("reported %d times while pods do not follow the profile", got)
	}
	object := strict(apiServer(map[string]any{"type": "Modern"}), "StrictAllComponents")
	if _, err := f.client.Resource(resource).Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, 10*time.Second, "another profile for pods is reported", func() bool { return f.changed.Load() == 1 })
}

func TestReadForPods(t *testing.T) {
	f := start(t, strict(apiServer(map[string]any{"type": "Modern"}), "StrictAllComponents"))
	if p, err := ReadForPods(t.Context(), f.client); err != nil || p.Name != "Modern" {
		t.Errorf("got %+v, %v, want Modern", p, err)
	}
	group := schema.GroupResource{Group: "config.openshift.io", Resource: "apiservers"}
	f.failWith(apierrors.NewNotFound(group, ""))
	if p, err := ReadForPods(t.Context(), f.client); err != nil || p.MinVersion != 0 {
		t.Errorf("without the API: got %+v, %v, want none", p, err)
	}
	f.failWith(apierrors.NewForbidden(group, "cluster", errors.New("no")))
	if _, err := ReadForPods(t.Context(), f.client); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want the refusal", err)
	}
	if p, err := ReadForPods(t.Context(), start(t).client); err != nil || p.MinVersion != 0 {
		t.Errorf("without the object: got %+v, %v, want none", p, err)
	}
}
