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
	listener     *Listener
	client       *fake.FakeDynamicClient
	clock        *clocktesting.FakeClock
	watcher      *Watcher
	listRequests atomic.Int32
	logEntries   atomic.Int32
	listErr      atomic.Pointer[error]
	podsChanged  atomic.Int32
}

func startWatcher(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	f := &fixture{listener: NewListener(), clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	f.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "APIServerList"}, objects...)
	f.client.PrependReactor("list", "apiservers", func(clienttesting.Action) (bool, runtime.Object, error) {
		f.listRequests.Add(1)
		if err := f.listErr.Load(); err != nil {
			return true, nil, *err
		}
		return false, nil, nil
	})
	log := funcr.New(func(string, string) { f.logEntries.Add(1) }, funcr.Options{})
	f.watcher = NewWatcher(Options{
		Listener: f.listener, Client: f.client, Clock: f.clock, Log: log, PodsChanged: func() { f.podsChanged.Add(1) },
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
		f.listErr.Store(nil)
		return
	}
	f.listErr.Store(&err)
}

func (f *fixture) expectProfile(t *testing.T, name string) {
	t.Helper()
	poll.Until(t, 10*time.Second, name+" is the current profile", func() bool { return f.listener.Current().Name == name })
}

func TestWatcherFollowsChanges(t *testing.T) {
	f := startWatcher(t, apiServer(map[string]any{"type": "Modern"}))
	if f.listRequests.Load() != 0 {
		t.Error("a list request was sent, although config.openshift.io is not served")
	}
	f.watcher.SetServed(true)
	f.expectProfile(t, "Modern")
	poll.Until(t, 10*time.Second, "the watch is started", func() bool { return len(f.client.Actions()) >= 2 })

	client := f.client.Resource(resource)
	if _, err := client.Update(t.Context(), apiServer(map[string]any{"type": "Old"}), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.expectProfile(t, "Old")
	if err := client.Delete(t.Context(), "cluster", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.expectProfile(t, "Intermediate")
	if _, err := client.Create(t.Context(), apiServer(map[string]any{"type": "Modern"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.expectProfile(t, "Modern")
	if got := f.listRequests.Load(); got != 1 {
		t.Errorf("got %d list requests, want 1, because the watch delivers changes", got)
	}
}

// [D38] Until the profile is read, the profile is Intermediate, and the watcher retries after a second.
func TestWatcherUsesIntermediateOnErrors(t *testing.T) {
	group := schema.GroupResource{Group: "config.openshift.io", Resource: "apiservers"}
	for name, err := range map[string]error{
		"forbidden":   apierrors.NewForbidden(group, "cluster", errors.New("no")),
		"not served":  apierrors.NewNotFound(group, ""),
		"unavailable": apierrors.NewServiceUnavailable("starting"),
		"timeout":     context.DeadlineExceeded,
		"other error": errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			f := startWatcher(t, apiServer(map[string]any{"type": "Modern"}))
			f.failWith(err)
			f.watcher.SetServed(true)
			poll.Until(t, 10*time.Second, "the list request failed and the watcher waits", func() bool { return f.listRequests.Load() == 1 && f.clock.HasWaiters() })
			if got := f.listener.Current().Name; got != "Intermediate" {
				t.Errorf("got profile %s, want Intermediate", got)
			}
			if f.logEntries.Load() == 0 {
				t.Error("the error was not logged")
			}
			f.failWith(nil)
			f.clock.Step(time.Second)
			f.expectProfile(t, "Modern")
		})
	}
}

// withAdherence sets spec.tlsAdherence of an APIServer.
func withAdherence(obj *unstructured.Unstructured, policy string) *unstructured.Unstructured {
	obj.Object["spec"].(map[string]any)["tlsAdherence"] = policy
	return obj
}

func TestWatcherReportsChangedProfileForPods(t *testing.T) {
	f := startWatcher(t, apiServer(map[string]any{"type": "Modern"}))
	f.watcher.SetServed(true)
	f.expectProfile(t, "Modern")
	poll.Until(t, 10*time.Second, "the watch is started", func() bool { return len(f.client.Actions()) >= 2 })
	if got := f.podsChanged.Load(); got != 0 {
		t.Errorf("got %d calls of PodsChanged, want none while pods do not follow the profile", got)
	}
	object := withAdherence(apiServer(map[string]any{"type": "Modern"}), "StrictAllComponents")
	if _, err := f.client.Resource(resource).Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, 10*time.Second, "PodsChanged is called", func() bool { return f.podsChanged.Load() == 1 })
}

func TestReadForPods(t *testing.T) {
	f := startWatcher(t, withAdherence(apiServer(map[string]any{"type": "Modern"}), "StrictAllComponents"))
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
		t.Errorf("got error %v, want Forbidden", err)
	}
	if p, err := ReadForPods(t.Context(), startWatcher(t).client); err != nil || p.MinVersion != 0 {
		t.Errorf("without the object: got %+v, %v, want none", p, err)
	}
}
