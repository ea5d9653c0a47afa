package raycluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// platforms determine the objects; the pod templates have injections.
var platforms = map[string]struct {
	spec string
	set  func(*testEnv)
}{
	"OpenShift":             {fmt.Sprintf(injectedHead, "oauth-proxy"), func(*testEnv) {}},
	"OpenShift, no sidecar": {mutualHead, func(s *testEnv) { s.settings.OAuth, s.settings.Publish = false, "open" }},
	"plain":                 {fmt.Sprintf(injectedHead, "kube-rbac-proxy"), func(s *testEnv) { s.served = capability.Set{} }},
	"plain, no sidecar":     {mutualHead, func(s *testEnv) { s.served, s.settings.OAuth = capability.Set{}, false }},
	"gateway": {mutualHead, func(s *testEnv) {
		s.served, s.settings.OAuth, s.settings.Publish = capability.NewSet(capability.HTTPRoute), false, "gateway"
	}},
}

// managedObjects returns the objects of the cluster by "Kind name".
func (s *testEnv) managedObjects() map[string]*unstructured.Unstructured {
	s.t.Helper()
	out := map[string]*unstructured.Unstructured{}
	for _, title := range s.managedNames() {
		out[title] = s.fetch(title)
	}
	return out
}

// fetch returns an object by "Kind name", or nil.
func (s *testEnv) fetch(title string) *unstructured.Unstructured {
	s.t.Helper()
	kind, name, _ := strings.Cut(title, " ")
	for _, gvk := range append(prunedKinds(capability.NewSet(optionalKinds...)), bindingKind) {
		if gvk.Kind != kind {
			continue
		}
		o, namespace := &unstructured.Unstructured{}, "team1"
		o.SetGroupVersionKind(gvk)
		if gvk == bindingKind {
			namespace = ""
		}
		if s.exists(o, namespace, name) {
			return o
		}
	}
	return nil
}

// content returns an object without fields that change with each write.
func content(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "data", raycluster.KeyCookie) // a new Secret has a new key
	return o.Object
}

// scalars returns the paths of all scalars that the controller owns.
func scalars(value any, path []string) [][]string {
	fields, isObject := value.(map[string]any)
	if !isObject {
		return [][]string{path}
	}
	var out [][]string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if len(path) == 0 && (name == "apiVersion" || name == "kind" || name == "roleRef") || // roleRef cannot be changed
			len(path) == 1 && path[0] == "metadata" && name != "labels" && name != "annotations" {
			continue
		}
		if _, isList := fields[name].([]any); isList {
			continue
		}
		out = append(out, scalars(fields[name], append(slices.Clone(path), name))...)
	}
	return out
}

// A deleted object is recreated, and then the controller is idle.
func TestDeletedObjectsAreRecreated(t *testing.T) {
	for name, platform := range platforms {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			platform.set(s)
			u := s.create(demoCluster(hashedVersion, platform.spec))
			s.reconcileUntilIdle(u)
			before := s.managedObjects()
			if len(before) < 4 {
				t.Fatalf("only %v", s.managedNames())
			}
			for title, was := range before {
				s.deleteObject(title)
				s.reconcileUntilIdle(u)
				is := s.fetch(title)
				if is == nil {
					t.Errorf("%s was deleted", title)
					continue
				}
				if diff := cmp.Diff(content(was), content(is)); diff != "" {
					t.Errorf("%s (-before +after):\n%s", title, diff)
				}
				s.expectIdle(u)
			}
		})
	}
}

// A changed owned field is reverted, and additional fields stay.
func TestChangedObjectsAreReverted(t *testing.T) {
	for name, platform := range platforms {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			platform.set(s)
			u := s.create(demoCluster(hashedVersion, platform.spec))
			s.reconcileUntilIdle(u)
			changes := 0
			for title, was := range s.managedObjects() {
				for _, path := range scalars(was.Object, nil) {
					if path[0] == "data" && path[1] == raycluster.KeyCookie {
						continue // a key that a user sets is kept for the life of the process
					}
					if path[0] == "metadata" && strings.HasPrefix(path[2], "platform.opendatahub.io/") {
						continue // the cache selects by these labels, so it would no longer show the object
					}
					if was.GetNamespace() == "" && path[0] == "metadata" && path[1] == "labels" {
						continue // the labels identify the cluster: a binding with others has another owner
					}
					is := s.fetch(title)
					changed, _, _ := unstructured.NestedFieldNoCopy(is.Object, path...)
					if _, isText := changed.(string); !isText {
						continue
					}
					changes++
					_ = unstructured.SetNestedField(is.Object, "tampered", path...)
					_ = unstructured.SetNestedField(is.Object, "theirs", "metadata", "annotations", "example.com/note")
					if err := s.server.Update(t.Context(), is); err != nil {
						t.Fatal(err)
					}
					s.reconcileUntilIdle(u)
					is = s.fetch(title)
					if is == nil || is.GetAnnotations()["example.com/note"] != "theirs" {
						t.Fatalf("%s: additions of other clients were removed at %v", title, path)
					}
					unstructured.RemoveNestedField(is.Object, "metadata", "annotations", "example.com/note")
					if len(is.GetAnnotations()) == 0 {
						unstructured.RemoveNestedField(is.Object, "metadata", "annotations")
					}
					if diff := cmp.Diff(content(was), content(is)); diff != "" {
						t.Errorf("%s, %v (-before +after):\n%s", title, path, diff)
					}
					s.expectIdle(u)
				}
			}
			if changes < 10 {
				t.Errorf("only %d changes were tried", changes)
			}
		})
	}
}

// permutations calls the function with every order of the items.
func permutations(items []string, with func([]string)) {
	var next func(done, rest []string)
	next = func(done, rest []string) {
		if len(rest) == 0 {
			with(done)
		}
		for i := range rest {
			next(append(slices.Clone(done), rest[i]), slices.Concat(rest[:i], rest[i+1:]))
		}
	}
	next(nil, items)
}

// [R6] [R7] For any order of deletion of the cluster, of its binding, a restart and a change of settings: no binding is created after the
// deletion started, none is left, and the deletion completes.
func TestDeletionInAnyOrder(t *testing.T) {
	ends := map[string]func(*testEnv, *unstructured.Unstructured){
		"the cluster": func(s *testEnv, u *unstructured.Unstructured) {
			if err := s.server.Delete(s.t.Context(), u); err != nil {
				s.t.Fatal(err)
			}
		},
		"the binding": func(s *testEnv, u *unstructured.Unstructured) {
			if title := "ClusterRoleBinding " + raycluster.View(u.Object).Names().ClusterRoleBinding; s.fetch(title) != nil {
				s.deleteObject(title)
			}
		},
		"the process": func(s *testEnv, _ *unstructured.Unstructured) { s.restart() },
		"OAuth":       func(s *testEnv, _ *unstructured.Unstructured) { s.settings.OAuth = false },
	}
	for version, platform := range map[string]capability.Set{"": openShift, hashedVersion: {}} { // as it is, or OpenShift ends first
		permutations(slices.Sorted(maps.Keys(ends)), func(order []string) {
			s := newTestEnv(t)
			u := s.create(demoCluster(version, fmt.Sprintf(injectedHead, "oauth-proxy")))
			s.reconcileUntilIdle(u)
			s.served = platform
			ended := false
			for _, end := range order {
				ends[end](s, u)
				ended = ended || end == "the cluster"
				for _, write := range s.mustReconcile(u) {
					if ended && strings.HasPrefix(write, "apply") {
						t.Fatalf("%q: %s after the end", order, write)
					}
				}
			}
			if s.exists(u.DeepCopy(), "team1", "demo") || s.anyBinding() {
				t.Fatalf("%q: the cluster or its binding is left: %v", order, s.managedNames())
			}
			s.expectIdle(u)
		})
	}
}

// A recreated cluster adopts and keeps the objects of the previous one.
func TestAClusterIsRecreated(t *testing.T) {
	for name, sweptBefore := range map[string]bool{"before the end was seen": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			u := s.create(demoCluster(hashedVersion, fmt.Sprintf(injectedHead, "oauth-proxy")))
			s.reconcileUntilIdle(u)
			s.edit(u, func() { u.SetFinalizers(nil) }) // by force: the binding stays
			if err := s.server.Delete(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			if sweptBefore {
				s.mustReconcile(u)
				if s.anyBinding() {
					t.Error("the ClusterRoleBinding of the deleted cluster exists")
				}
			}
			for title := range s.managedObjects() { // the garbage collector
				if !strings.HasPrefix(title, "ClusterRoleBinding ") {
					s.deleteObject(title)
				}
			}
			again := clusterFrom(t, demoCluster(hashedVersion, fmt.Sprintf(injectedHead, "oauth-proxy")))
			again.SetUID(types.UID("another"))
			again.SetGeneration(1)
			if err := s.server.Create(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			s.reconcileUntilIdle(again)
			s.expectIdle(again)
			for title, o := range s.managedObjects() {
				if owners := o.GetOwnerReferences(); len(owners) > 0 && owners[0].UID != "another" {
					t.Errorf("%s belongs to %v", title, owners)
				}
			}
			if diff := cmp.Diff(s.desiredObjects(again), s.managedNames()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s.reread(again); !slices.Contains(again.GetFinalizers(), raycluster.Finalizer) {
				t.Error("the cluster has a ClusterRoleBinding but no finalizer")
			}
		})
	}
}

// Two clusters with similar names share no object, and the deletion of one does not affect the other.
func TestClustersWithSimilarNames(t *testing.T) {
	s := newTestEnv(t)
	text := fmt.Sprintf(injectedHead, "oauth-proxy")
	clusters := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"demo", "demo-oauth", "demo-head", "ray-dashboard-demo"} {
		clusters[name] = s.create(strings.Replace(demoCluster(hashedVersion, text), "name: demo", "name: "+name+", uid: "+name, 1))
	}
	settle := func() {
		for range 3 {
			for name, u := range clusters {
				if _, _, err := s.reconcile(u); err != nil {
					t.Fatalf("%s: unexpected error: %v", name, err)
				}
			}
		}
	}
	settle()
	before := s.managedObjects()
	owned := func(name string) int {
		return len(slices.DeleteFunc(slices.Collect(maps.Values(before)), func(o *unstructured.Unstructured) bool {
			return o.GetLabels()[raycluster.LabelClusterName] != name
		}))
	}
	for name := range clusters {
		if got, want := owned(name), len(s.desiredObjects(clusters[name])); got != want {
			t.Errorf("%s has %d objects, want %d", name, got, want)
		}
	}
	if err := s.server.Delete(t.Context(), clusters["demo-oauth"]); err != nil {
		t.Fatal(err)
	}
	s.mustReconcile(clusters["demo-oauth"])
	delete(clusters, "demo-oauth")
	settle()
	for title, o := range before {
		isManaged := o.GetLabels()[raycluster.LabelClusterName] == "demo-oauth"
		is := s.fetch(title)
		if o.GetNamespace() == "" && isManaged {
			if is != nil {
				t.Errorf("%s is left", title)
			}
			continue
		}
		if !isManaged && (is == nil || is.GetResourceVersion() != o.GetResourceVersion()) {
			t.Errorf("%s of another cluster changed", title)
		}
	}
	for _, u := range clusters {
		s.expectIdle(u)
	}
}

// Requests for unknown clusters send no requests.
func TestRequestsWithoutACluster(t *testing.T) {
	s := newTestEnv(t)
	u := clusterFrom(t, demoCluster(hashedVersion, plainHead))
	s.expectIdle(u)
	if err := s.server.Get(t.Context(), client.ObjectKeyFromObject(u), u); err == nil {
		t.Error("the cluster was created")
	}
}
