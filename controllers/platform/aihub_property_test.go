package platform

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// story is what happens to an AIHub, step by step.
type story struct {
	*hubBench
	rt *rapid.T
}

var storyNamespaces = []string{"apps", "one", "two"}

// step lets one thing happen.
func (s *story) step() {
	switch rapid.SampledFrom([]string{"pass", "pass", "move", "state", "switch", "serve", "fault", "heal", "foreign", "lost", "restart"}).Draw(s.rt, "step") {
	case "pass":
		_, _ = s.shell.Reconcile(s.Context(), ctrl.Request{NamespacedName: hubKey})
	case "move":
		s.change(func(a *platformv1alpha1.AIHub) {
			a.Spec.InstancesNamespace = rapid.SampledFrom(storyNamespaces).Draw(s.rt, "namespace")
		})
	case "state":
		s.change(func(a *platformv1alpha1.AIHub) {
			a.Annotations = map[string]string{ManagementState: rapid.SampledFrom([]string{"Managed", "Removed", "Unmanaged", ""}).Draw(s.rt, "state")}
		})
	case "switch":
		s.logic.settings.Catalog.Enabled = rapid.Bool().Draw(s.rt, "enabled")
	case "serve":
		s.served = capability.NewSet(aihubKind, registryKind)
		if rapid.Bool().Draw(s.rt, "served") {
			s.served = capability.NewSet(aihubKind, registryKind, catalogKind)
		}
	case "fault":
		broken := rapid.SampledFrom([]string{"create", "delete", "patch", "patch status"}).Draw(s.rt, "verb")
		s.failing = func(verb, _ string) error {
			if verb == broken {
				return errors.New("broken for a while")
			}
			return nil
		}
	case "heal":
		s.failing = nil
	case "foreign":
		c := catalogOf(rapid.SampledFrom(storyNamespaces).Draw(s.rt, "namespace"), "")
		c.Finalizers, c.Labels = nil, map[string]string{"foreign": "yes"}
		_ = s.server.Create(s.Context(), c)
	case "lost":
		for _, c := range s.catalogs() {
			if c.Labels["foreign"] == "" {
				_ = s.server.Delete(s.Context(), &c)
			}
		}
	case "restart":
		s.restart()
	}
}

func (s *story) catalogs() []aihubv1alpha1.Catalog {
	list := &aihubv1alpha1.CatalogList{}
	if err := s.server.List(s.Context(), list); err != nil {
		s.rt.Fatal(err)
	}
	return list.Items
}

// endFaults ends all trouble and lets the controller finish.
func (s *story) endFaults() {
	s.failing = nil
	s.restart()
	s.served = capability.NewSet(aihubKind, registryKind, catalogKind)
	s.change(func(a *platformv1alpha1.AIHub) { a.Annotations = nil })
	for range 6 {
		if _, err := s.shell.Reconcile(s.Context(), ctrl.Request{NamespacedName: hubKey}); err != nil {
			s.rt.Fatal(err)
		}
	}
}

// After any sequence of events, the AIHub is ready, there is a Catalog in its namespace, none of its own elsewhere, those
// owned by others are untouched, and nothing more is written.
func TestAIHubConverges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &story{newHubBench(t, aiHubWith(func(a *platformv1alpha1.AIHub) { a.Spec.InstancesNamespace = "one" })), rt}
		foreign := 0
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			s.step()
			now := 0
			for _, c := range s.catalogs() {
				if c.Labels["foreign"] != "" {
					now++
				}
			}
			if now < foreign {
				rt.Fatal("a Catalog of another client was deleted")
			}
			foreign = now
		}
		s.endFaults()
		a := s.get()
		if a.Status.Phase != "Ready" {
			rt.Fatalf("phase %q: %+v", a.Status.Phase, a.Status.Conditions)
		}
		home := false
		for _, c := range s.catalogs() {
			if metav1.IsControlledBy(&c, a) && c.Namespace != a.Spec.InstancesNamespace {
				rt.Fatalf("a Catalog of ours is left in %s", c.Namespace)
			}
			home = home || c.Namespace == a.Spec.InstancesNamespace
		}
		if !home {
			rt.Fatal("the Catalog of the AIHub is missing")
		}
		if a.Spec.InstancesNamespace != "apps" && !s.exists(namespaceNamed(a.Spec.InstancesNamespace)) {
			rt.Fatal("the namespace of registries is missing")
		}
		s.writes = nil
		if _, err := s.shell.Reconcile(s.Context(), ctrl.Request{NamespacedName: hubKey}); err != nil || len(s.writes) > 0 {
			rt.Fatalf("at rest: error %v, writes %q", err, s.writes)
		}
	})
}

// The message of a component that does not run names the cause and the fix, and begins as the legacy message does.
// [modelregistry-108]
func TestProgramProblem(t *testing.T) {
	all := capability.NewSet(aihubKind, catalogKind, registryKind)
	for name, tc := range map[string]struct {
		program Program
		served  capability.Set
		parts   []string
	}{
		"runs":          {Program{Enabled: true, Requires: nil}, capability.Set{}, nil},
		"all is served": {Program{Enabled: true, Requires: []schema.GroupVersionKind{catalogKind, registryKind}}, all, nil},
		"disabled": {Program{Deployment: "d", Component: "c", Requires: []schema.GroupVersionKind{catalogKind}}, all,
			[]string{"child deployment d not found: ", "component c", "--enable-c"}},
		"one is missing": {Program{Deployment: "d", Component: "c", Enabled: true, Requires: []schema.GroupVersionKind{catalogKind, registryKind}}, capability.NewSet(catalogKind),
			[]string{"child deployment d not yet Available: ", "ModelRegistry.modelregistry.opendatahub.io", "install its CustomResourceDefinition"}},
		"both are missing": {Program{Deployment: "d", Component: "c", Enabled: true, Requires: []schema.GroupVersionKind{catalogKind, registryKind}}, capability.Set{},
			[]string{"Catalog.aihub.opendatahub.io, ModelRegistry.modelregistry.opendatahub.io"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.program.problem(tc.served)
			if (got == "") != (len(tc.parts) == 0) {
				t.Errorf("problem %q", got)
			}
			for _, part := range tc.parts {
				if !strings.Contains(got, part) {
					t.Errorf("%q lacks %q", got, part)
				}
			}
		})
	}
}

func TestNamespaceConflict(t *testing.T) {
	for name, tc := range map[string]struct {
		setting, wanted string
		clashes         bool
	}{
		"no setting": {"", "registries", false}, "the same": {"registries", "registries", false}, "another": {"other", "registries", true},
	} {
		if problem := namespaceConflict(tc.setting, tc.wanted); (problem != "") != tc.clashes {
			t.Errorf("%s: unexpected problem: %v", name, problem)
		}
	}
}
