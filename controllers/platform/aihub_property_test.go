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

// scenario is an AIHub that random steps change.
type scenario struct {
	*hubFixture
	rt *rapid.T
}

var scenarioNamespaces = []string{"apps", "one", "two"}

// step executes a random step.
func (s *scenario) step() {
	switch rapid.SampledFrom([]string{
		"reconcile", "reconcile", "change namespace", "change management state", "enable or disable component", "serve or remove API",
		"inject fault", "remove fault", "create foreign Catalog", "delete Catalogs", "restart",
	}).Draw(s.rt, "step") {
	case "reconcile":
		_, _ = s.reconciler.Reconcile(s.Context(), ctrl.Request{NamespacedName: hubKey})
	case "change namespace":
		s.update(func(a *platformv1alpha1.AIHub) {
			a.Spec.InstancesNamespace = rapid.SampledFrom(scenarioNamespaces).Draw(s.rt, "namespace")
		})
	case "change management state":
		s.update(func(a *platformv1alpha1.AIHub) {
			a.Annotations = map[string]string{ManagementState: rapid.SampledFrom([]string{"Managed", "Removed", "Unmanaged", ""}).Draw(s.rt, "state")}
		})
	case "enable or disable component":
		s.logic.settings.Catalog.Enabled = rapid.Bool().Draw(s.rt, "enabled")
	case "serve or remove API":
		s.served = capability.NewSet(aihubKind, registryKind)
		if rapid.Bool().Draw(s.rt, "served") {
			s.served = capability.NewSet(aihubKind, registryKind, catalogKind)
		}
	case "inject fault":
		failingVerb := rapid.SampledFrom([]string{"create", "delete", "patch", "patch status"}).Draw(s.rt, "verb")
		s.requestError = func(verb, _ string) error {
			if verb == failingVerb {
				return errors.New("injected")
			}
			return nil
		}
	case "remove fault":
		s.requestError = nil
	case "create foreign Catalog":
		c := newCatalog(rapid.SampledFrom(scenarioNamespaces).Draw(s.rt, "namespace"), "")
		c.Finalizers, c.Labels = nil, map[string]string{"foreign": "yes"}
		_ = s.server.Create(s.Context(), c)
	case "delete Catalogs":
		for _, c := range s.catalogs() {
			if c.Labels["foreign"] == "" {
				_ = s.server.Delete(s.Context(), &c)
			}
		}
	case "restart":
		s.restart()
	}
}

func (s *scenario) catalogs() []aihubv1alpha1.Catalog {
	list := &aihubv1alpha1.CatalogList{}
	if err := s.server.List(s.Context(), list); err != nil {
		s.rt.Fatal(err)
	}
	return list.Items
}

// endFaults removes all faults, restores the settings and the management state, and reconciles six times.
func (s *scenario) endFaults() {
	s.requestError = nil
	s.restart()
	s.served = capability.NewSet(aihubKind, registryKind, catalogKind)
	s.update(func(a *platformv1alpha1.AIHub) { a.Annotations = nil })
	for range 6 {
		if _, err := s.reconciler.Reconcile(s.Context(), ctrl.Request{NamespacedName: hubKey}); err != nil {
			s.rt.Fatal(err)
		}
	}
}

// After any sequence of steps, the AIHub is ready, a Catalog exists in spec.instancesNamespace, the AIHub controls none in other
// namespaces, no foreign Catalog was deleted, and nothing is written in the steady state.
func TestAIHubConverges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &scenario{newHubFixture(t, aiHubWith(func(a *platformv1alpha1.AIHub) { a.Spec.InstancesNamespace = "one" })), rt}
		foreignBefore := 0
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			s.step()
			foreign := 0
			for _, c := range s.catalogs() {
				if c.Labels["foreign"] != "" {
					foreign++
				}
			}
			if foreign < foreignBefore {
				rt.Fatal("a Catalog of another client was deleted")
			}
			foreignBefore = foreign
		}
		s.endFaults()
		a := s.get()
		if a.Status.Phase != "Ready" {
			rt.Fatalf("got phase %q and conditions %+v", a.Status.Phase, a.Status.Conditions)
		}
		found := false
		for _, c := range s.catalogs() {
			if metav1.IsControlledBy(&c, a) && c.Namespace != a.Spec.InstancesNamespace {
				rt.Fatalf("a Catalog of the AIHub was not deleted in namespace %s", c.Namespace)
			}
			found = found || c.Namespace == a.Spec.InstancesNamespace
		}
		if !found {
			rt.Fatal("no Catalog exists in spec.instancesNamespace")
		}
		if a.Spec.InstancesNamespace != "apps" && !s.exists(namespaceNamed(a.Spec.InstancesNamespace)) {
			rt.Fatal("the namespace of registries is missing")
		}
		s.writes = nil
		if _, err := s.reconciler.Reconcile(s.Context(), ctrl.Request{NamespacedName: hubKey}); err != nil || len(s.writes) > 0 {
			rt.Fatalf("steady state: error %v, writes %q", err, s.writes)
		}
	})
}

// The message of a component that does not run has the cause and the fix, and starts like that of the legacy operator.
// [modelregistry-108]
func TestComponentProblem(t *testing.T) {
	all := capability.NewSet(aihubKind, catalogKind, registryKind)
	for name, tc := range map[string]struct {
		component Component
		served    capability.Set
		parts     []string
	}{
		"no requirements": {Component{Enabled: true, Requires: nil}, capability.Set{}, nil},
		"all APIs served": {Component{Enabled: true, Requires: []schema.GroupVersionKind{catalogKind, registryKind}}, all, nil},
		"disabled": {Component{Deployment: "d", Component: "c", Requires: []schema.GroupVersionKind{catalogKind}}, all,
			[]string{"child deployment d not found: ", "component c", "--enable-c"}},
		"one API missing": {Component{Deployment: "d", Component: "c", Enabled: true, Requires: []schema.GroupVersionKind{catalogKind, registryKind}}, capability.NewSet(catalogKind),
			[]string{"child deployment d not yet Available: ", "ModelRegistry.modelregistry.opendatahub.io", "install its CustomResourceDefinition"}},
		"both APIs missing": {Component{Deployment: "d", Component: "c", Enabled: true, Requires: []schema.GroupVersionKind{catalogKind, registryKind}}, capability.Set{},
			[]string{"Catalog.aihub.opendatahub.io, ModelRegistry.modelregistry.opendatahub.io"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.component.problem(tc.served)
			if (got == "") != (len(tc.parts) == 0) {
				t.Errorf("got problem %q", got)
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
		setting, desired string
		conflict         bool
	}{
		"no setting": {"", "registries", false}, "equal": {"registries", "registries", false}, "different": {"other", "registries", true},
	} {
		if problem := namespaceConflict(tc.setting, tc.desired); (problem != "") != tc.conflict {
			t.Errorf("%s: problem %q, want one: %t", name, problem, tc.conflict)
		}
	}
}
