package component

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

func TestNames(t *testing.T) {
	if got := Names([]Component{{Name: "b"}, {Name: "a"}, {Name: "c"}}); !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("known %q", got)
	}
	if Names(nil) == nil {
		t.Error("want a non-nil list of names for no components")
	}
}

func TestAddToScheme(t *testing.T) {
	broken := errors.New("group is taken")
	components := []Component{
		{Name: "a", Types: []func(*runtime.Scheme) error{appsv1.AddToScheme, func(*runtime.Scheme) error { return broken }}},
		{Name: "b", Types: []func(*runtime.Scheme) error{routev1.Install}},
	}
	s := runtime.NewScheme()
	err := AddToScheme(s, components)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "component a: ") {
		t.Errorf("error %v", err)
	}
	components[0].Types = components[0].Types[:1]
	if err := AddToScheme(s, components); err != nil {
		t.Error(err)
	}
	if !s.Recognizes(appsv1.SchemeGroupVersion.WithKind("Deployment")) || !s.Recognizes(routev1.GroupVersion.WithKind("Route")) {
		t.Error("want the types of Kubernetes and OpenShift in the scheme")
	}
}

func TestSetup(t *testing.T) {
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
	if err := Setup(t.Context(), mgr, &fakeCapabilities{}, components, func(name string) bool { return name != "b" }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a webhooks on", "a controllers", "b webhooks off"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	if len(mgr.added) != 1 {
		t.Errorf("%d runnables were added, want the controller", len(mgr.added))
	}
}

func TestSetupErrors(t *testing.T) {
	broken := errors.New("port in use")
	for name, tc := range map[string]struct {
		component Component
		want      string
	}{
		"webhooks": {
			Component{Name: "a", Webhooks: func(ctrl.Manager, bool) error { return broken }},
			"component a: setting up webhooks: port in use",
		},
		"controllers": {
			Component{Name: "a", Controllers: func(context.Context, ctrl.Manager) error { return broken }},
			"component a: setting up controllers: port in use",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := Setup(t.Context(), newManager(t), &fakeCapabilities{}, []Component{tc.component}, all)
			if !errors.Is(err, broken) || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestWatchedKinds(t *testing.T) {
	got := WatchedKinds([]Component{
		{Name: "a", Requires: []schema.GroupVersionKind{required, capability.RayCluster}},
		{Name: "b", Requires: []schema.GroupVersionKind{required}},
	})
	if want := append(capability.Known(), required); !slices.Equal(got, want) {
		t.Errorf("got %v, want the known kinds and the required one", got)
	}
}
