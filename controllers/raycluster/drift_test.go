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
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// platforms are combinations of head template, settings and platform. All head templates have injections.
var platforms = map[string]struct {
	spec   string
	change func(*testEnv)
}{
	"OpenShift":             {fmt.Sprintf(injectedHead, "oauth-proxy"), func(*testEnv) {}},
	"OpenShift, no sidecar": {mutualHead, func(s *testEnv) { s.settings.OAuth, s.settings.Publish = false, "open" }},
	"plain":                 {fmt.Sprintf(injectedHead, "kube-rbac-proxy"), func(s *testEnv) { s.served = capability.Set{} }},
	"plain, no sidecar":     {mutualHead, func(s *testEnv) { s.served, s.settings.OAuth = capability.Set{}, false }},
	"gateway": {mutualHead, func(s *testEnv) {
		s.served, s.settings.OAuth, s.settings.Publish = capability.NewSet(capability.HTTPRoute), false, "gateway"
	}},
}

// managedObjects returns the managed objects of all clusters by "Kind name".
func (s *testEnv) managedObjects() map[string]*unstructured.Unstructured {
	s.t.Helper()
	out := map[string]*unstructured.Unstructured{}
	for _, kindAndName := range s.managedNames() {
		out[kindAndName] = s.fetch(kindAndName)
	}
	return out
}

// fetch returns an object by "Kind name", or nil.
func (s *testEnv) fetch(kindAndName string) *unstructured.Unstructured {
	s.t.Helper()
	kind, name, _ := strings.Cut(kindAndName, " ")
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

// content returns an object without the fields that differ after a recreation.
func content(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "data", raycluster.KeyCookie) // a new Secret has a new key
	return o.Object
}

// scalars returns the paths of the scalars of an object that other clients can change, except those in lists.
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

// A deleted object is recreated, after which the controller is idle.
func TestDeletedObjectsAreRecreated(t *testing.T) {
	for name, platform := range platforms {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			platform.change(s)
			u := s.create(demoCluster(hashedVersion, platform.spec))
			s.reconcileUntilIdle(u)
			before := s.managedObjects()
			if len(before) < 4 {
				t.Fatalf("got only the objects %v", s.managedNames())
			}
			for kindAndName, original := range before {
				s.deleteObject(kindAndName)
				s.reconcileUntilIdle(u)
				recreated := s.fetch(kindAndName)
				if recreated == nil {
					t.Errorf("%s was not recreated", kindAndName)
					continue
				}
				if diff := cmp.Diff(content(original), content(recreated)); diff != "" {
					t.Errorf("%s (-before +after):\n%s", kindAndName, diff)
				}
				s.expectIdle(u)
			}
		})
	}
}

// Changes of owned text fields are reverted, and fields of other clients are not changed.
func TestChangedObjectsAreReverted(t *testing.T) {
	for name, platform := range platforms {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			platform.change(s)
			u := s.create(demoCluster(hashedVersion, platform.spec))
			s.reconcileUntilIdle(u)
			changes := 0
			for kindAndName, original := range s.managedObjects() {
				for _, path := range scalars(original.Object, nil) {
					if path[0] == "data" && path[1] == raycluster.KeyCookie {
						continue // content ignores the key
					}
					if path[0] == "metadata" && (path[2] == names.OperatorLabel || path[2] == names.ComponentLabel) {
						continue // the operator recognizes its objects by the operator and component labels
					}
					if original.GetNamespace() == "" && path[0] == "metadata" && path[1] == "labels" {
						continue // the labels identify the cluster: a binding with other labels belongs to another cluster
					}
					current := s.fetch(kindAndName)
					value, _, _ := unstructured.NestedFieldNoCopy(current.Object, path...)
					if _, isText := value.(string); !isText {
						continue
					}
					changes++
					_ = unstructured.SetNestedField(current.Object, "tampered", path...)
					_ = unstructured.SetNestedField(current.Object, "theirs", "metadata", "annotations", "example.com/note")
					if err := s.server.Update(t.Context(), current); err != nil {
						t.Fatal(err)
					}
					s.reconcileUntilIdle(u)
					current = s.fetch(kindAndName)
					if current == nil || current.GetAnnotations()["example.com/note"] != "theirs" {
						t.Fatalf("%s: additions of other clients were removed at %v", kindAndName, path)
					}
					unstructured.RemoveNestedField(current.Object, "metadata", "annotations", "example.com/note")
					if len(current.GetAnnotations()) == 0 {
						unstructured.RemoveNestedField(current.Object, "metadata", "annotations")
					}
					if diff := cmp.Diff(content(original), content(current)); diff != "" {
						t.Errorf("%s, %v (-before +after):\n%s", kindAndName, path, diff)
					}
					s.expectIdle(u)
				}
			}
			if changes < 10 {
				t.Errorf("only %d changes were tested", changes)
			}
		})
	}
}

// forEachOrder calls a function with every order of the items.
func forEachOrder(items []string, call func([]string)) {
	var next func(done, rest []string)
	next = func(done, rest []string) {
		if len(rest) == 0 {
			call(done)
		}
		for i := range rest {
			next(append(slices.Clone(done), rest[i]), slices.Concat(rest[:i], rest[i+1:]))
		}
	}
	next(nil, items)
}

// [R6] [R7] For any order of the deletion of the cluster, the deletion of its binding, a restart and a change of settings: no binding is
// created after the deletion of the cluster started, no binding remains, and the deletion completes.
func TestDeletionInAnyOrder(t *testing.T) {
	steps := map[string]func(*testEnv, *unstructured.Unstructured){
		"delete the cluster": func(s *testEnv, u *unstructured.Unstructured) {
			if err := s.server.Delete(s.t.Context(), u); err != nil {
				s.t.Fatal(err)
			}
		},
		"delete the binding": func(s *testEnv, u *unstructured.Unstructured) {
			if kindAndName := "ClusterRoleBinding " + raycluster.View(u.Object).Names().ClusterRoleBinding; s.fetch(kindAndName) != nil {
				s.deleteObject(kindAndName)
			}
		},
		"restart":       func(s *testEnv, _ *unstructured.Unstructured) { s.restart() },
		"disable OAuth": func(s *testEnv, _ *unstructured.Unstructured) { s.settings.OAuth = false },
	}
	for version, platform := range map[string]capability.Set{"": openShift, hashedVersion: {}} { // on OpenShift, or after OpenShift's APIs were removed
		forEachOrder(slices.Sorted(maps.Keys(steps)), func(order []string) {
			s := newTestEnv(t)
			u := s.create(demoCluster(version, fmt.Sprintf(injectedHead, "oauth-proxy")))
			s.reconcileUntilIdle(u)
			s.served = platform
			terminating := false
			for _, step := range order {
				steps[step](s, u)
				terminating = terminating || step == "delete the cluster"
				for _, write := range s.mustReconcile(u) {
					if terminating && strings.HasPrefix(write, "apply") {
						t.Fatalf("%q: %s after the deletion of the cluster", order, write)
					}
				}
			}
			if s.exists(u.DeepCopy(), "team1", "demo") || s.hasBinding() {
				t.Fatalf("%q: the cluster or its binding remains: %v", order, s.managedNames())
			}
			s.expectIdle(u)
		})
	}
}

// The objects of a recreated cluster are recreated, whether or not the deletion of the previous one was reconciled.
func TestRecreatedCluster(t *testing.T) {
	for name, reconciled := range map[string]bool{"deletion not reconciled": false, "deletion reconciled": true} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			u := s.create(demoCluster(hashedVersion, fmt.Sprintf(injectedHead, "oauth-proxy")))
			s.reconcileUntilIdle(u)
			s.edit(u, func() { u.SetFinalizers(nil) }) // a forced deletion, which leaves the binding
			if err := s.server.Delete(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			if reconciled {
				s.mustReconcile(u)
				if s.hasBinding() {
					t.Error("the ClusterRoleBinding of the deleted cluster exists")
				}
			}
			for kindAndName := range s.managedObjects() { // as the garbage collector does
				if !strings.HasPrefix(kindAndName, "ClusterRoleBinding ") {
					s.deleteObject(kindAndName)
				}
			}
			recreated := clusterFrom(t, demoCluster(hashedVersion, fmt.Sprintf(injectedHead, "oauth-proxy")))
			recreated.SetUID(types.UID("another"))
			recreated.SetGeneration(1)
			if err := s.server.Create(t.Context(), recreated); err != nil {
				t.Fatal(err)
			}
			s.reconcileUntilIdle(recreated)
			s.expectIdle(recreated)
			for kindAndName, o := range s.managedObjects() {
				if owners := o.GetOwnerReferences(); len(owners) > 0 && owners[0].UID != "another" {
					t.Errorf("%s has owners %v, want the recreated cluster", kindAndName, owners)
				}
			}
			if diff := cmp.Diff(s.desiredNames(recreated), s.managedNames()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s.refresh(recreated); !slices.Contains(recreated.GetFinalizers(), raycluster.Finalizer) {
				t.Error("the cluster has a ClusterRoleBinding but no finalizer")
			}
		})
	}
}

// Clusters with similar names share no object, and the deletion of one does not affect the others.
func TestClustersWithSimilarNames(t *testing.T) {
	s := newTestEnv(t)
	spec := fmt.Sprintf(injectedHead, "oauth-proxy")
	clusters := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"demo", "demo-oauth", "demo-head", "ray-dashboard-demo"} {
		clusters[name] = s.create(strings.Replace(demoCluster(hashedVersion, spec), "name: demo", "name: "+name+", uid: "+name, 1))
	}
	reconcileAll := func() {
		for range 3 {
			for name, u := range clusters {
				if _, _, err := s.reconcile(u); err != nil {
					t.Fatalf("%s: unexpected error: %v", name, err)
				}
			}
		}
	}
	reconcileAll()
	before := s.managedObjects()
	owned := func(name string) int {
		return len(slices.DeleteFunc(slices.Collect(maps.Values(before)), func(o *unstructured.Unstructured) bool {
			return o.GetLabels()[raycluster.LabelClusterName] != name
		}))
	}
	for name := range clusters {
		if got, want := owned(name), len(s.desiredNames(clusters[name])); got != want {
			t.Errorf("%s has %d objects, want %d", name, got, want)
		}
	}
	if err := s.server.Delete(t.Context(), clusters["demo-oauth"]); err != nil {
		t.Fatal(err)
	}
	s.mustReconcile(clusters["demo-oauth"])
	delete(clusters, "demo-oauth")
	reconcileAll()
	for kindAndName, o := range before {
		isOfDeleted := o.GetLabels()[raycluster.LabelClusterName] == "demo-oauth"
		current := s.fetch(kindAndName)
		if o.GetNamespace() == "" && isOfDeleted {
			if current != nil {
				t.Errorf("%s was not deleted", kindAndName)
			}
			continue
		}
		if !isOfDeleted && (current == nil || current.GetResourceVersion() != o.GetResourceVersion()) {
			t.Errorf("%s of another cluster changed", kindAndName)
		}
	}
	for _, u := range clusters {
		s.expectIdle(u)
	}
}

// A reconcile of a cluster that does not exist sends no request.
func TestReconcileIgnoresMissingCluster(t *testing.T) {
	s := newTestEnv(t)
	u := clusterFrom(t, demoCluster(hashedVersion, plainHead))
	s.expectIdle(u)
	if err := s.server.Get(t.Context(), client.ObjectKeyFromObject(u), u); err == nil {
		t.Error("the cluster was created")
	}
}
