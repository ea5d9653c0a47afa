package access

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authFixture is a running authWatcher with a fake API server.
type authFixture struct {
	*testing.T
	client *fake.FakeDynamicClient
	*authWatcher
	served        capability.Set
	notifications atomic.Int32
}

// newAuthFixture starts the watcher. The API of Auth is not served yet.
func newAuthFixture(t *testing.T, objects ...runtime.Object) *authFixture {
	t.Helper()
	w := &authFixture{T: t}
	w.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{auths: "AuthList"}, objects...)
	w.authWatcher = newAuthWatcher(w.client, func() capability.Set { return w.served }, clock.RealClock{}, logr.Discard())
	w.Subscribe(t.Context(), func(auth) { w.notifications.Add(1) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *authFixture) serve(kinds ...schema.GroupVersionKind) {
	w.served = capability.NewSet(kinds...)
	w.SetServed(w.served.Has(capability.PlatformAuth))
}

func authObject(name string, admins ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"allowedGroups": []any{}, "adminGroups": admins}}}
	u.SetGroupVersionKind(capability.PlatformAuth)
	u.SetName(name)
	return u
}

// expectState checks the observed Auth and the number of notifications since the last call.
func (w *authFixture) expectState(state authState, admins string, notified int32) {
	w.Helper()
	synctest.Wait()
	if a := w.current(); a.State != state || strings.Join(a.Groups.Admin, " ") != admins {
		w.Errorf("got Auth %+v, want state %d with %q", a, state, admins)
	}
	if n := w.notifications.Swap(0); n != notified {
		w.Errorf("got %d notifications, want %d", n, notified)
	}
}

// must fails the test if a request to the API server failed.
func (w *authFixture) must(_ any, err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Auth is listed and watched by name. A change that keeps the groups notifies no subscriber.
func TestWatchAuth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAuthFixture(t, authObject("another", "other-admins"))
		w.expectState(authNotServed, "", 0)
		w.serve(capability.PlatformAuth)
		// The tracker of the fake ignores field selectors, so it delivers the other Auth too, which the watcher ignores.
		w.expectState(authMissing, "", 1)
		api := w.client.Resource(auths)
		w.must(api.Create(t.Context(), authObject("auth", "admins"), metav1.CreateOptions{}))
		w.expectState(authKnown, "admins", 1)
		labelled := authObject("auth", "admins")
		labelled.SetLabels(map[string]string{"example.com/touched": "yes"})
		w.must(api.Update(t.Context(), labelled, metav1.UpdateOptions{}))
		w.expectState(authKnown, "admins", 0)
		w.must(api.Update(t.Context(), authObject("auth", "admins", "root"), metav1.UpdateOptions{}))
		w.expectState(authKnown, "admins root", 1)
		w.must(api.Update(t.Context(), authObject("auth", int64(1)), metav1.UpdateOptions{}))
		w.expectState(authInvalid, "", 1)
		w.must(nil, api.Delete(t.Context(), "auth", metav1.DeleteOptions{}))
		w.expectState(authMissing, "", 1)

		for _, action := range w.client.Actions() {
			switch a := action.(type) {
			case clienttesting.ListAction:
				if got := a.GetListRestrictions().Fields.String(); got != "metadata.name=auth" {
					t.Errorf("listed with field selector %q", got)
				}
			case clienttesting.WatchAction:
				if got := a.GetWatchRestrictions().Fields.String(); got != "metadata.name=auth" {
					t.Errorf("watched with field selector %q", got)
				}
			}
		}
	})
}

// When the API is removed, the previous groups are discarded.
func TestAuthAPIIsAddedAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAuthFixture(t, authObject("auth", "admins"))
		w.serve(capability.PlatformAuth)
		w.expectState(authKnown, "admins", 1)
		w.serve(capability.PlatformAuth, capability.Route)
		w.expectState(authKnown, "admins", 0)
		w.serve(capability.Route)
		w.expectState(authNotServed, "", 1)
		w.serve(capability.PlatformAuth) // the previous watch has not ended yet
		w.expectState(authUnknown, "", 0)
	})
}
