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

// desiredNames returns "Kind name" of the objects that a new controller would create for a cluster.
func (s *testEnv) desiredNames(u *unstructured.Unstructured) []string {
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

// retainedNames returns "Kind name" of the objects that are retained but not created.
func (s *testEnv) retainedNames(u *unstructured.Unstructured) []string {
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

// templates are specs of RayClusters with and without injected elements in the head template.
var templates = []string{plainHead, mutualHead, fmt.Sprintf(injectedHead, "oauth-proxy"), fmt.Sprintf(injectedHead, "kube-rbac-proxy")}

// disruptions are changes of settings, platform, cluster and objects, and restarts of the controller, by name.
var disruptions = map[string]func(random *rand.Rand, s *testEnv, u *unstructured.Unstructured){
	"OAuth": func(_ *rand.Rand, s *testEnv, _ *unstructured.Unstructured) { s.settings.OAuth = !s.settings.OAuth },
	"mTLS":  func(_ *rand.Rand, s *testEnv, _ *unstructured.Unstructured) { s.settings.MTLS = !s.settings.MTLS },
	"policies": func(_ *rand.Rand, s *testEnv, _ *unstructured.Unstructured) {
		s.settings.OpenToNamespace = !s.settings.OpenToNamespace
	},
	"platform": func(random *rand.Rand, s *testEnv, _ *unstructured.Unstructured) {
		s.served = choose(random, []capability.Set{openShift, {}, capability.NewSet(capability.HTTPRoute), openShift.WithPlatformKubeRay(true)})
		for _, o := range s.managedNames() { // the API server deletes the objects of a removed API
			if strings.HasPrefix(o, "Route ") && !s.served.Has(capability.Route) || strings.HasPrefix(o, "HTTPRoute ") && !s.served.Has(capability.HTTPRoute) {
				s.deleteObject(o)
			}
		}
	},
	"publish": func(random *rand.Rand, s *testEnv, _ *unstructured.Unstructured) {
		s.settings.Publish = choose(random, []string{"auto", "open", "gateway", "none"})
	},
	"domain": func(random *rand.Rand, s *testEnv, _ *unstructured.Unstructured) {
		s.settings.IngressDomain = choose(random, []string{"", "one.example.org", "two.example.org"})
	},
	"suspend": func(random *rand.Rand, s *testEnv, u *unstructured.Unstructured) {
		s.edit(u, func() { _ = unstructured.SetNestedField(u.Object, random.IntN(2) == 0, "spec", "suspend") })
	},
	"managed": func(random *rand.Rand, s *testEnv, u *unstructured.Unstructured) {
		by := choose(random, []string{"", raycluster.ManagerMultiKueue, raycluster.ManagerKubeRay})
		s.edit(u, func() { _ = unstructured.SetNestedField(u.Object, by, "spec", "managedBy") })
	},
	"template": func(random *rand.Rand, s *testEnv, u *unstructured.Unstructured) {
		head := clusterFrom(s.t, choose(random, templates)).Object["spec"].(map[string]any)["headGroupSpec"]
		s.edit(u, func() { _ = unstructured.SetNestedField(u.Object, head, "spec", "headGroupSpec") })
	},
	"drift": func(random *rand.Rand, s *testEnv, _ *unstructured.Unstructured) {
		if all := s.managedNames(); len(all) > 0 {
			s.deleteObject(choose(random, all))
		}
	},
	"finalizer": func(_ *rand.Rand, s *testEnv, u *unstructured.Unstructured) {
		s.edit(u, func() { u.SetFinalizers(nil) })
	},
	"restart": func(_ *rand.Rand, s *testEnv, _ *unstructured.Unstructured) { s.restart() },
}

// edit updates the stored cluster as a user does.
func (s *testEnv) edit(u *unstructured.Unstructured, change func()) {
	s.t.Helper()
	s.refresh(u)
	change()
	u.SetGeneration(u.GetGeneration() + 1)
	if err := s.server.Update(s.t.Context(), u); err != nil {
		s.t.Fatal(err)
	}
}

// deleteObject deletes a managed object by "Kind name".
func (s *testEnv) deleteObject(kindAndName string) {
	s.t.Helper()
	kind, name, _ := strings.Cut(kindAndName, " ")
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

// restart clears the state of the controller, as a new process does.
func (s *testEnv) restart() {
	s.states = reconciler.SyncMap[types.NamespacedName, *clusterState]{}
	s.applier = apply.New(s.applier.Options)
}

// After any sequence of disruptions the controller reaches the steady state. All desired objects exist, and no others except retained ones.
// The finalizer is set if and only if the binding exists, and deletion leaves no binding.
func TestReconcileConvergesAfterDisruptions(t *testing.T) {
	const sequences = 25
	for seed := range uint64(sequences) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := newTestEnv(t)
		u := s.create(demoCluster(choose(random, []string{"", hashedVersion}), choose(random, templates)))
		var applied []string
		for range 1 + random.IntN(8) {
			name := choose(random, slices.Sorted(maps.Keys(disruptions)))
			applied = append(applied, name)
			disruptions[name](random, s, u)
			if random.IntN(2) == 0 {
				s.mustReconcile(u)
			}
		}
		s.reconcileUntilIdle(u)
		s.expectIdle(u)
		s.refresh(u)
		want, got := s.desiredNames(u), s.managedNames()
		if missing := difference(want, got); len(missing) > 0 {
			t.Fatalf("seed %d, after %q: missing objects %q", seed, applied, missing)
		}
		if extra := difference(got, append(want, s.retainedNames(u)...)); len(extra) > 0 {
			t.Fatalf("seed %d, after %q: unexpected objects %q", seed, applied, extra)
		}
		hasBinding := slices.ContainsFunc(got, func(o string) bool { return strings.HasPrefix(o, "ClusterRoleBinding ") })
		if hasBinding != controllerutil.ContainsFinalizer(u, raycluster.Finalizer) {
			t.Fatalf("seed %d, after %q: ClusterRoleBinding exists: %t, but the finalizers are %v", seed, applied, hasBinding, u.GetFinalizers())
		}
		s.edit(u, func() { u.SetFinalizers(append(u.GetFinalizers(), "example.com/other")) })
		if err := s.server.Delete(s.t.Context(), u); err != nil {
			t.Fatal(err)
		}
		s.reconcileUntilIdle(u)
		if s.refresh(u); !slices.Equal(u.GetFinalizers(), []string{"example.com/other"}) || s.hasBinding() {
			t.Fatalf("seed %d, after %q and the deletion: finalizers %v, ClusterRoleBinding exists: %t", seed, applied, u.GetFinalizers(), s.hasBinding())
		}
	}
}

// choose returns a random element.
func choose[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// difference returns the elements of a that b lacks.
func difference(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(element string) bool { return slices.Contains(b, element) })
}

func (s *testEnv) hasBinding() bool {
	list := &rbacv1.ClusterRoleBindingList{}
	if err := s.server.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	return len(list.Items) > 0
}

// errCrash is the error of writes that the API server does not store because of a crash.
var errCrash = errors.New("the process crashed")

// scenarios are changes of an idle cluster, or nil for a cluster that was just created.
var scenarios = map[string]func(s *testEnv, u *unstructured.Unstructured){
	"created":        nil,
	"OAuth disabled": func(s *testEnv, _ *unstructured.Unstructured) { s.settings.OAuth = false },
	"suspended": func(s *testEnv, u *unstructured.Unstructured) {
		s.edit(u, func() { _ = unstructured.SetNestedField(u.Object, true, "spec", "suspend") })
	},
	"moved to MultiKueue": func(s *testEnv, u *unstructured.Unstructured) {
		s.edit(u, func() { _ = unstructured.SetNestedField(u.Object, raycluster.ManagerMultiKueue, "spec", "managedBy") })
	},
	"deleted": func(s *testEnv, u *unstructured.Unstructured) {
		s.edit(u, func() { u.SetFinalizers(append(u.GetFinalizers(), "example.com/other")) })
		if err := s.server.Delete(s.t.Context(), u); err != nil {
			s.t.Fatal(err)
		}
	},
}

// The next process recovers from a crash during any write, whether or not the API server has stored the write.
func TestRecoversFromCrashAtEachWrite(t *testing.T) {
	for name, scenario := range scenarios {
		for _, stored := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, write stored %t", name, stored), func(t *testing.T) {
				want := runWithCrash(t, scenario, 0, stored)
				for write := 1; ; write++ {
					got := runWithCrash(t, scenario, write, stored)
					if diff := cmp.Diff(want.state, got.state); diff != "" {
						t.Errorf("crash at write %d (-without +with):\n%s", write, diff)
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
	state   []string // objects and finalizers
	crashed bool
}

// runWithCrash runs a scenario with a crash at the given write; 0 for none. The API server stores that write if stored is set.
func runWithCrash(t *testing.T, scenario func(*testEnv, *unstructured.Unstructured), write int, stored bool) outcome {
	t.Helper()
	s := newTestEnv(t)
	u := s.create(demoCluster(hashedVersion, plainHead))
	if scenario != nil {
		s.reconcileUntilIdle(u)
		scenario(s, u)
	}
	sent, crashed, restarted := 0, false, false
	s.failWrite = func(string, string) error {
		if crashed && !restarted {
			return errCrash // the crashed process sends no more writes
		}
		if sent++; sent != write {
			return nil
		}
		if crashed = true; stored {
			return nil
		}
		return errCrash
	}
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team1", Name: "demo"}}
	for range 10 {
		_, err := reconciler.ClassifyErrors(s).Reconcile(t.Context(), request)
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		if crashed && !restarted {
			s.restart()
			restarted = true
		}
	}
	s.failWrite = func(string, string) error { return nil }
	s.reconcileUntilIdle(u)
	s.expectIdle(u)
	s.refresh(u)
	return outcome{state: append(s.managedNames(), u.GetFinalizers()...), crashed: crashed}
}
