package component

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// Webhooks are registered immediately, also those of disabled components, and controllers are added on the leader.
func TestSetup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		component := func(name string) Component {
			return Component{
				Name: name,
				Webhooks: func(_ ctrl.Manager, enabled bool) error {
					calls = append(calls, name+" webhooks "+map[bool]string{true: "on", false: "off"}[enabled])
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
		want := []string{"a webhooks on", "b webhooks off"}
		if !slices.Equal(calls, want) {
			t.Errorf("calls %q, want %q", calls, want)
		}
		close(mgr.elected)
		defer mgr.start()()
		if want = append(want, "a controllers"); !slices.Equal(calls, want) {
			t.Errorf("calls %q, want %q", calls, want)
		}
		if len(mgr.added) != 2 {
			t.Errorf("%d runnables were added, want a supervisor and its controller", len(mgr.added))
		}
	})
}

func TestSetupErrors(t *testing.T) {
	broken := errors.New("port in use")
	failing := Component{Name: "a", Webhooks: func(ctrl.Manager, bool) error { return broken }}
	err := Setup(newManager(t), &fakeCapabilities{}, []Component{failing}, all)
	if want := "component a: setting up webhooks: port in use"; !errors.Is(err, broken) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestWatchedKinds(t *testing.T) {
	got := WatchedKinds([]Component{
		{Name: "a", Requires: []schema.GroupVersionKind{required, capability.RayCluster}},
		{Name: "b", Requires: []schema.GroupVersionKind{required}},
	})
	if want := capability.NewSet(append(capability.Known(), required)...); !got.Equal(want) {
		t.Errorf("got %s, want the known kinds and the required one", got)
	}
}
