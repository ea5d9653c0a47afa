package singleton

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clienttesting "k8s.io/client-go/testing"

	"github.com/odh-platform/odh-platform-operator/test/poll"
)

// objectsInNamespaces returns an object with the watched name for each namespace of values.
func objectsInNamespaces(values map[string]string) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for namespace, value := range values {
		u := object("settings", value)
		u.SetNamespace(namespace)
		all = append(all, u)
	}
	return all
}

// useOnList makes the watcher of a fixture call OnList for all namespaces, and returns a function that returns the last list.
func useOnList(f *fixture) (last func() string) {
	var mu sync.Mutex
	listed := "not called"
	f.watcher.Client = f.client.Resource(resource)
	f.watcher.OnUpdate = func(*unstructured.Unstructured) { panic("OnUpdate is for a single object") }
	f.watcher.OnList = func(all []*unstructured.Unstructured) {
		var parts []string
		for _, u := range all {
			value, _, _ := unstructured.NestedString(u.Object, "data", "k")
			parts = append(parts, fmt.Sprintf("%s=%s", u.GetNamespace(), value))
		}
		mu.Lock()
		defer mu.Unlock()
		listed = strings.Join(parts, " ")
	}
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return listed
	}
}

func TestOnListWatchesAllNamespaces(t *testing.T) {
	f := newFixture(t)
	for _, u := range append(objectsInNamespaces(map[string]string{"b": "2", "a": "1"}), object("other", "never")) {
		if err := f.client.Tracker().Add(u); err != nil {
			t.Fatal(err)
		}
	}
	last := useOnList(f)
	f.start(t).watcher.SetServed(true)
	waitForList := func(want string) {
		t.Helper()
		poll.Until(t, 10*time.Second, "OnList is called with "+want, func() bool { return last() == want })
	}
	waitForList("a=1 b=2")
	poll.Until(t, 10*time.Second, "the watch runs", func() bool { return len(f.client.Actions()) >= 2 })
	client := f.client.Resource(resource)

	for _, u := range append(objectsInNamespaces(map[string]string{"c": "3"}), object("other two", "never")) {
		if _, err := client.Namespace(u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	waitForList("a=1 b=2 c=3")
	if _, err := client.Namespace("a").Update(t.Context(), objectsInNamespaces(map[string]string{"a": "9"})[0], metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForList("a=9 b=2 c=3")
	if err := client.Namespace("b").Delete(t.Context(), "settings", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForList("a=9 c=3")
	for _, namespace := range []string{"a", "c"} {
		if err := client.Namespace(namespace).Delete(t.Context(), "settings", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	waitForList("")
	if f.lists.Load() != 1 {
		t.Errorf("got %d list requests, want 1", f.lists.Load())
	}
}

// Objects that were deleted between two lists are not passed to OnList again.
func TestOnListDropsObjectsDeletedBetweenWatches(t *testing.T) {
	f := newFixture(t)
	last := useOnList(f)
	for _, step := range []struct {
		values map[string]string
		want   string
	}{{map[string]string{"a": "1", "b": "2"}, "a=1 b=2"}, {map[string]string{"b": "3"}, "b=3"}, {nil, ""}} {
		var items []unstructured.Unstructured
		for _, u := range objectsInNamespaces(step.values) {
			items = append(items, *u)
		}
		f.watcher.replaceObjects(items)
		if last() != step.want {
			t.Errorf("got %q, want %q", last(), step.want)
		}
	}
}

// Objects are selected by label, with any name, and stored after Transform.
func TestOnListSelectsByLabel(t *testing.T) {
	f := newFixture(t)
	last := useOnList(f)
	f.watcher.Name, f.watcher.Labels = "", "team"
	f.watcher.Transform = func(u *unstructured.Unstructured) {
		value, _, _ := unstructured.NestedString(u.Object, "data", "k")
		u.Object["data"] = map[string]any{"k": value[:1]}
	}
	labelled := func(namespace, name, value string) *unstructured.Unstructured {
		u := object(name, value)
		u.SetNamespace(namespace)
		u.SetLabels(map[string]string{"team": "a"})
		return u
	}
	unlabelled := object("unlabelled", "never")
	for _, u := range []*unstructured.Unstructured{labelled("b", "x", "1 and more"), labelled("a", "z", "2"), labelled("a", "y", "3"), unlabelled} {
		if err := f.client.Tracker().Add(u); err != nil {
			t.Fatal(err)
		}
	}
	f.start(t).watcher.SetServed(true)
	waitForList := func(want string) {
		t.Helper()
		poll.Until(t, 10*time.Second, "OnList is called with "+want, func() bool { return last() == want })
	}
	waitForList("a=3 a=2 b=1")
	poll.Until(t, 10*time.Second, "the watch runs", func() bool { return len(f.client.Actions()) >= 2 })
	for _, action := range f.client.Actions() {
		if watching, ok := action.(clienttesting.WatchAction); ok && watching.GetWatchRestrictions().Labels.String() != "team" {
			t.Errorf("got a watch with label selector %q, want team", watching.GetWatchRestrictions().Labels)
		}
	}
	if _, err := f.client.Resource(resource).Namespace("a").Create(t.Context(), labelled("a", "w", "4 and more"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForList("a=4 a=3 a=2 b=1")
	if err := f.client.Resource(resource).Namespace("a").Delete(t.Context(), "y", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitForList("a=4 a=2 b=1")
}
