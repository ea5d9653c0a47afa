package mlflowaccess

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authWorld is an API server with Auths, and what a follower said of them.
type authWorld struct {
	*testing.T
	client *fake.FakeDynamicClient
	follower

	mu     sync.Mutex
	set    capability.Set
	events chan struct{}
	told   atomic.Int32 // how many events there were, taken from the channel or not
}

func newAuthWorld(t *testing.T, objects ...runtime.Object) *authWorld {
	t.Helper()
	w := &authWorld{T: t, set: capability.NewSet(capability.PlatformAuth), events: make(chan struct{}, 100)}
	w.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{auths: "AuthList"}, objects...)
	w.follower = follower{client: w.client, served: func() capability.Set {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.set
	}}
	return w
}

func (w *authWorld) serve(set capability.Set) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set = set
}

func authObject(name string, admins ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"allowedGroups": []any{}, "adminGroups": admins}}}
	u.SetGroupVersionKind(capability.PlatformAuth)
	u.SetName(name)
	return u
}

func (w *authWorld) begin(ctx context.Context) {
	w.Helper()
	if err := w.follow(ctx, func() {
		w.told.Add(1)
		w.events <- struct{}{}
	}); err != nil {
		w.Fatal(err)
	}
}

// becomes waits for events until a state and its admins are known.
func (w *authWorld) becomes(state authState, admins string) {
	w.Helper()
	deadline := time.After(20 * time.Second)
	for {
		if a := w.now(); a.state == state && strings.Join(a.groups.admin, " ") == admins {
			return
		}
		select {
		case <-w.events:
		case <-deadline:
			w.Fatalf("it is %+v, want state %d with %q", w.now(), state, admins)
		}
	}
}

// Auth is followed live, as one object: a list of one, a watch of one.
func TestFollowAuth(t *testing.T) {
	w := newAuthWorld(t, authObject("another", "strangers"))
	ctx, cancel := context.WithCancel(t.Context())
	if a := w.now(); a.state != authUnknown {
		t.Errorf("before it was read: %+v", a)
	}
	w.begin(ctx)
	// The tracker of the fake ignores field selectors, so another Auth is delivered too: it counts for nothing.
	w.becomes(authMissing, "")
	api := w.client.Resource(auths)
	if _, err := api.Create(ctx, authObject("auth", "admins"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes(authKnown, "admins")
	if _, err := api.Update(ctx, authObject("auth", "admins", "root"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes(authKnown, "admins root")
	if _, err := api.Update(ctx, authObject("auth", int64(1)), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes(authInvalid, "")
	if err := api.Delete(ctx, "auth", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes(authMissing, "")

	for _, action := range w.client.Actions() {
		switch a := action.(type) {
		case clienttesting.ListAction:
			if got := a.GetListRestrictions().Fields.String(); got != "metadata.name=auth" {
				t.Errorf("lists %q", got)
			}
		case clienttesting.WatchAction:
			if got := a.GetWatchRestrictions().Fields.String(); got != "metadata.name=auth" {
				t.Errorf("watches %q", got)
			}
		}
	}
	cancel()
	<-w.events // the end is told as well
}

// A change of Auth that names the same groups is no news.
func TestSameGroupsAreNoNews(t *testing.T) {
	w := newAuthWorld(t, authObject("auth", "admins"))
	ctx, cancel := context.WithCancel(t.Context())
	w.begin(ctx)
	w.becomes(authKnown, "admins")
	labelled := authObject("auth", "admins")
	labelled.SetLabels(map[string]string{"example.com/touched": "yes"})
	if _, err := w.client.Resource(auths).Update(ctx, labelled, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Resource(auths).Update(ctx, authObject("auth", "root"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes(authKnown, "root")
	cancel()
	// What is known changes before the event for it is sent: becomes may have left any of them in the channel.
	const want = 3 // the two groups, and the end
	for w.told.Load() < want {
		select {
		case <-w.events:
		case <-time.After(20 * time.Second):
			t.Fatalf("%d events, want %d", w.told.Load(), want)
		}
	}
	if n := w.told.Load(); n > want {
		t.Errorf("%d events, want %d", n, want)
	}
}

// When the API goes, nothing that was known counts any more, and what an earlier run still has to say is not heard.
func TestAuthAPIComesAndGoes(t *testing.T) {
	w := newAuthWorld(t, authObject("auth", "admins"))
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		w.serve(capability.NewSet(capability.PlatformAuth))
		w.begin(ctx)
		w.becomes(authKnown, "admins")
		w.serve(capability.NewSet())
		cancel()
		w.becomes(authNotServed, "")
		<-w.events
	}
	first := w.follower.begin()
	second := w.follower.begin()
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	if err := store.Add(authObject("auth", "late")); err != nil {
		t.Fatal(err)
	}
	if w.take(first, store) || !w.take(second, store) {
		t.Error("a run that has been followed by another is heard")
	}
	w.end(first)
	w.serve(capability.NewSet(capability.PlatformAuth))
	if w.now().state != authKnown {
		t.Error("the end of an earlier run took away what the present one knows")
	}
	w.end(second)
	if w.now().state != authUnknown {
		t.Error("what was known outlives its run")
	}
}
