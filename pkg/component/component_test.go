package component

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
)

// Webhooks are registered immediately, even those of disabled components. Controllers of enabled components are added on the leader.
func TestSetup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		component := func(name string) Component {
			return Component{
				Name: name,
				Webhooks: func(_ ctrl.Manager, enabled bool) error {
					calls = append(calls, name+" webhooks "+map[bool]string{true: "enabled", false: "disabled"}[enabled])
					return nil
				},
				Controllers: func(_ context.Context, mgr ctrl.Manager) error {
					calls = append(calls, name+" controllers")
					return mgr.Add(&worker{})
				},
			}
		}
		components := []Component{component("a"), component("b"), {Name: "empty"}}
		mgr := newManager(t)
		if err := Setup(mgr, &fakeCapabilities{}, components, func(name string) bool { return name != "b" }); err != nil {
			t.Fatal(err)
		}
		want := []string{"a webhooks enabled", "b webhooks disabled"}
		if !slices.Equal(calls, want) {
			t.Errorf("got calls %q, want %q", calls, want)
		}
		close(mgr.elected)
		defer mgr.start()()
		if want = append(want, "a controllers"); !slices.Equal(calls, want) {
			t.Errorf("got calls %q, want %q", calls, want)
		}
		if len(mgr.added) != 2 {
			t.Errorf("got %d runnables, want a supervisor and its controller", len(mgr.added))
		}
	})
}

func TestSetupErrors(t *testing.T) {
	webhookErr := errors.New("port in use")
	failing := Component{Name: "a", Webhooks: func(ctrl.Manager, bool) error { return webhookErr }}
	err := Setup(newManager(t), &fakeCapabilities{}, []Component{failing}, enableAll)
	if want := "component a: setting up webhooks: port in use"; !errors.Is(err, webhookErr) || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// requiredKind is a kind that a component requires.
var requiredKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Required"}

func TestWatchedKinds(t *testing.T) {
	got := WatchedKinds([]Component{
		{Name: "a", Requires: []schema.GroupVersionKind{requiredKind, capability.RayCluster}},
		{Name: "b", Requires: []schema.GroupVersionKind{requiredKind}},
	})
	if want := capability.NewSet(append(capability.Known(), requiredKind)...); !got.Equal(want) {
		t.Errorf("got %s, want the known kinds and the required one", got)
	}
}

func TestCachedCustomKindsAreWatched(t *testing.T) {
	usedKind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Used"}
	components := []Component{
		{Name: "a", Requires: []schema.GroupVersionKind{requiredKind}, Caches: []managercache.Need{{Kind: usedKind}, {Kind: capability.HTTPRoute}}},
		{Name: "b", Caches: []managercache.Need{{Kind: requiredKind}, {Kind: usedKind}, {Kind: corev1.SchemeGroupVersion.WithKind("Secret")}}},
	}
	if got, want := WatchedKinds(components), capability.NewSet(append(capability.Known(), requiredKind, usedKind)...); !got.Equal(want) {
		t.Errorf("got watched kinds %s, want %s", got, want)
	}
}
