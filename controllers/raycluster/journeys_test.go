package raycluster

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// managedNames returns "Kind name" of the managed objects.
func (s *testEnv) managedNames() []string {
	s.t.Helper()
	var out []string
	for _, kind := range append(prunedKinds(capability.NewSet(optionalKinds...)), bindingKind) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := s.server.List(s.t.Context(), list, client.MatchingLabels(names.Labels(ComponentName))); err != nil {
			s.t.Fatal(err)
		}
		for _, item := range list.Items {
			out = append(out, kind.Kind+" "+item.GetName())
		}
	}
	slices.Sort(out)
	return out
}

// desiredObjects returns "Kind name" of the objects that a new controller would create for a cluster.
func (s *testEnv) desiredObjects(u *unstructured.Unstructured) []string {
	s.t.Helper()
	c := raycluster.View(u.Object)
	in, err := s.inputs(s.t.Context(), u, c)
	if err != nil {
		s.t.Fatal(err)
	}
	p := resources.Build(c, in)
	all := slices.Concat(p.Policies, p.SidecarObjects, p.Exposure)
	if p.Binding != nil && !p.RetainsBinding {
		all = append(all, *p.Binding)
	}
	objects, err := apply.Render(all, ComponentName, u)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, o := range objects {
		out = append(out, o.GetKind()+" "+o.GetName())
	}
	slices.Sort(out)
	return out
}

// retainedObjects returns "Kind name" of the objects that are retained but not created.
func (s *testEnv) retainedObjects(u *unstructured.Unstructured) []string {
	s.t.Helper()
	c := raycluster.View(u.Object)
	in, err := s.inputs(s.t.Context(), u, c)
	if err != nil {
		s.t.Fatal(err)
	}
	p := resources.Build(c, in)
	if p.RetainsBinding {
		p.Retained = append(p.Retained, *p.Binding)
	}
	objects, err := apply.Render(p.Retained, ComponentName, u)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, o := range objects {
		out = append(out, o.GetKind()+" "+o.GetName())
	}
	return out
}

// reconcileUntilIdle reconciles until nothing is written.
func (s *testEnv) reconcileUntilIdle(u *unstructured.Unstructured) {
	s.t.Helper()
	for range 6 {
		if len(s.mustReconcile(u)) == 0 {
			return
		}
	}
	s.t.Fatalf("still writing after six reconciles: %q", s.writes)
}

// templates are pod templates with and without injections.
var templates = []string{plainHead, mutualHead, fmt.Sprintf(injectedHead, "oauth-proxy"), fmt.Sprintf(injectedHead, "kube-rbac-proxy")}

// turns are random events; each returns its name.
var turns = map[string]func(dice *rand.Rand, s *testEnv, u *unstructured.Unstructured){
	"OAuth": func(_ *rand.Rand, s *testEnv, _ *unstructured.Unstructured) { s.settings.OAuth = !s.settings.OAuth },
	"mTLS":  func(_ *rand.Rand, s *testEnv, _ *unstructured.Unstructured) { s.settings.MTLS = !s.settings.MTLS },
	"policies": func(_ *rand.Rand, s *testEnv, _ *unstructured.Unstructured) {
		s.settings.OpenToNamespace = !s.settings.OpenToNamespace
	},
	"platform": func(dice *rand.Rand, s *testEnv, _ *unstructured.Unstructured) {
		s.served = oneOf(dice, []capability.Set{openShift, {}, capability.NewSet(capability.HTTPRoute), openShift.WithPlatformKubeRay(true)})
		for _, o := range s.managedNames() { // with an API its objects go
			if strings.HasPrefix(o, "Route ") && !s.served.Has(capability.Route) || strings.HasPrefix(o, "HTTPRoute ") && !s.served.Has(capability.HTTPRoute) {
				s.deleteObject(o)
			}
		}
	},
	"publish": func(dice *rand.Rand, s *testEnv, _ *unstructured.Unstructured) {
		s.settings.Publish = oneOf(dice, []string{"auto", "open", "gateway", "none"})
	},
	"domain": func(dice *rand.Rand, s *testEnv, _ *unstructured.Unstructured) {
		s.settings.IngressDomain = oneOf(dice, []string{"", "one.example.org", "two.example.org"})
	},
	"suspend": func(dice *rand.Rand, s *testEnv, u *unstructured.Unstructured) {
		s.edit(u, func() { _ = unstructured.SetNestedField(u.Object, dice.IntN(2) == 0, "spec", "suspend") })
	},
	"managed": func(dice *rand.Rand, s *testEnv, u *unstructured.Unstructured) {
		by := oneOf(dice, []string{"", raycluster.ManagerMultiKueue, raycluster.ManagerKubeRay})
		s.edit(u, func() { _ = unstructured.SetNestedField(u.Object, by, "spec", "managedBy") })
	},
	"template": func(dice *rand.Rand, s *testEnv, u *unstructured.Unstructured) {
		head := clusterFrom(s.t, oneOf(dice, templates)).Object["spec"].(map[string]any)["headGroupSpec"]
		s.edit(u, func() { _ = unstructured.SetNestedField(u.Object, head, "spec", "headGroupSpec") })
	},
	"drift": func(dice *rand.Rand, s *testEnv, _ *unstructured.Unstructured) {
		if all := s.managedNames(); len(all) > 0 {
			s.deleteObject(oneOf(dice, all))
		}
	},
	"finalizer": func(_ *rand.Rand, s *testEnv, u *unstructured.Unstructured) {
		s.edit(u, func() { u.SetFinalizers(nil) })
	},
	"restart": func(_ *rand.Rand, s *testEnv, _ *unstructured.Unstructured) { s.restart() },
}

// edit changes the stored cluster like a user.
func (s *testEnv) edit(u *unstructured.Unstructured, change func()) {
	s.t.Helper()
	s.reread(u)
	change()
	u.SetGeneration(u.GetGeneration() + 1)
	if err := s.server.Update(s.t.Context(), u); err != nil {
		s.t.Fatal(err)
	}
}

// deleteObject deletes a managed object.
func (s *testEnv) deleteObject(title string) {
	s.t.Helper()
	kind, name, _ := strings.Cut(title, " ")
	for _, gvk := range append(prunedKinds(capability.NewSet(optionalKinds...)), bindingKind) {
		if gvk.Kind != kind {
			continue
		}
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(gvk)
		o.SetName(name)
		if gvk != bindingKind {
			o.SetNamespace("team1")
		}
		if err := s.server.Delete(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
}

// restart replaces the controller, so that its state is lost.
func (s *testEnv) restart() {
	s.states = reconciler.SyncMap[types.NamespacedName, *clusterState]{}
	s.applier = apply.New(s.applier.Options)
}

// After any sequence of events the controller gets idle, and the objects are the desired and the retained ones. The finalizer exists
// exactly with the binding, and deletion leaves no binding.
func TestJourneys(t *testing.T) {
	const journeys = 25
	for seed := range uint64(journeys) {
		dice := rand.New(rand.NewPCG(seed, 1))
		s := newTestEnv(t)
		u := s.create(demoCluster(oneOf(dice, []string{"", hashedVersion}), oneOf(dice, templates)))
		var story []string
		for range 1 + dice.IntN(8) {
			turn := oneOf(dice, slices.Sorted(maps.Keys(turns)))
			story = append(story, turn)
			turns[turn](dice, s, u)
			if dice.IntN(2) == 0 {
				s.mustReconcile(u)
			}
		}
		s.reconcileUntilIdle(u)
		s.expectIdle(u)
		s.reread(u)
		want, got := s.desiredObjects(u), s.managedNames()
		if missing := difference(want, got); len(missing) > 0 {
			t.Fatalf("journey %d: after %q is missing %q", seed, story, missing)
		}
		if extra := difference(got, append(want, s.retainedObjects(u)...)); len(extra) > 0 {
			t.Fatalf("journey %d: after %q is left %q", seed, story, extra)
		}
		bound := slices.ContainsFunc(got, func(o string) bool { return strings.HasPrefix(o, "ClusterRoleBinding ") })
		if bound != controllerutil.ContainsFinalizer(u, raycluster.Finalizer) {
			t.Fatalf("after %q, the ClusterRoleBinding exists: %t, but the finalizers are %v", story, bound, u.GetFinalizers())
		}
		s.edit(u, func() { u.SetFinalizers(append(u.GetFinalizers(), "example.com/other")) })
		if err := s.server.Delete(s.t.Context(), u); err != nil {
			t.Fatal(err)
		}
		s.reconcileUntilIdle(u)
		if s.reread(u); !slices.Equal(u.GetFinalizers(), []string{"example.com/other"}) || s.anyBinding() {
			t.Fatalf("after %q and its end: finalizers %v, binding %t", story, u.GetFinalizers(), s.anyBinding())
		}
	}
}

// oneOf draws a value.
func oneOf[T any](dice *rand.Rand, from []T) T { return from[dice.IntN(len(from))] }

func difference(all, these []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(these, one) })
}

func (s *testEnv) anyBinding() bool {
	list := &rbacv1.ClusterRoleBindingList{}
	if err := s.server.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	return len(list.Items) > 0
}

// errCrash ends a reconcile.
var errCrash = errors.New("the process ends")

// scenarios must succeed despite crashes.
var scenarios = map[string]func(s *testEnv, u *unstructured.Unstructured){
	"creation":       func(*testEnv, *unstructured.Unstructured) {},
	"OAuth disabled": func(s *testEnv, _ *unstructured.Unstructured) { s.settings.OAuth = false },
	"is suspended": func(s *testEnv, u *unstructured.Unstructured) {
		s.edit(u, func() { _ = unstructured.SetNestedField(u.Object, true, "spec", "suspend") })
	},
	"moved to MultiKueue": func(s *testEnv, u *unstructured.Unstructured) {
		s.edit(u, func() { _ = unstructured.SetNestedField(u.Object, raycluster.ManagerMultiKueue, "spec", "managedBy") })
	},
	"is deleted": func(s *testEnv, u *unstructured.Unstructured) {
		s.edit(u, func() { u.SetFinalizers(append(u.GetFinalizers(), "example.com/other")) })
		if err := s.server.Delete(s.t.Context(), u); err != nil {
			s.t.Fatal(err)
		}
	},
}

// A crash after any write, or a failed write, is recovered by the next process.
func TestCrashesAfterEveryWrite(t *testing.T) {
	for name, scenario := range scenarios {
		for _, made := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, write carried out %t", name, made), func(t *testing.T) {
				calm := endOf(t, scenario, 0, made)
				for at := 1; ; at++ {
					got := endOf(t, scenario, at, made)
					if diff := cmp.Diff(calm.state, got.state); diff != "" {
						t.Errorf("a crash at write %d (-calm +crashed):\n%s", at, diff)
					}
					if !got.crashed {
						break
					}
				}
			})
		}
	}
}

type outcome struct {
	state   []string // objects, finalizers and the cookie
	crashed bool
}

// endOf runs a scenario with a crash at the given write; 0 for none.
func endOf(t *testing.T, scenario func(*testEnv, *unstructured.Unstructured), at int, made bool) outcome {
	t.Helper()
	s := newTestEnv(t)
	u := s.create(demoCluster(hashedVersion, plainHead))
	if scenario != nil {
		s.reconcileUntilIdle(u)
		scenario(s, u)
	}
	sent, crashed := 0, false
	s.refuse = func(string, string) error {
		if sent++; at == 0 || crashed || sent != at {
			return nil
		}
		crashed = true
		if made {
			return nil // the next request meets a process that is new
		}
		return errCrash
	}
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team1", Name: "demo"}}
	for range 10 {
		was := crashed
		_, err := reconciler.ClassifyErrors(s).Reconcile(t.Context(), request)
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		if crashed != was {
			s.restart()
		}
	}
	s.refuse = func(string, string) error { return nil }
	s.reconcileUntilIdle(u)
	s.expectIdle(u)
	s.reread(u)
	return outcome{state: append(s.managedNames(), u.GetFinalizers()...), crashed: crashed}
}
