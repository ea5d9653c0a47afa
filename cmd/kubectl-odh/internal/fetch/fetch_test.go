package fetch

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/odh-platform/odh-platform-operator/test/fakecluster"
)

func TestMapLimitsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, maxRunning atomic.Int64
		items := make([]int, 50)
		for i := range items {
			items[i] = i
		}
		got := Map(items, func(i int) int {
			now := running.Add(1)
			for old := maxRunning.Load(); now > old && !maxRunning.CompareAndSwap(old, now); old = maxRunning.Load() {
			}
			time.Sleep(time.Second) // with the fake clock, until all concurrent calls sleep
			running.Add(-1)
			return i
		})
		if !slices.Equal(got, items) || maxRunning.Load() != maxConcurrentRequests {
			t.Errorf("got %v and %d concurrent calls, want %v and %d", got, maxRunning.Load(), items, maxConcurrentRequests)
		}
	})
}

func reader(t *testing.T, cluster *fakecluster.Cluster) Reader {
	t.Helper()
	config := &rest.Config{Host: cluster.URL}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return Reader{Objects: objects, Metadata: meta, Gaps: &Gaps{}}
}

var configMaps = Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", Namespaced: true, Listable: true}

func newConfigMaps(count int) []unstructured.Unstructured {
	var out []unstructured.Unstructured
	for i := range count {
		u := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}}
		u.SetNamespace([]string{"one", "two"}[i%2])
		u.SetName(fmt.Sprintf("map-%d", i))
		out = append(out, u)
	}
	return out
}

func TestListReadsAllPages(t *testing.T) {
	cluster := fakecluster.Start(t, fakecluster.KubernetesKinds(), newConfigMaps(7))
	cluster.Page(2)
	r := reader(t, cluster)
	for namespace, want := range map[string]int{"": 7, "one": 4, "two": 3, "three": 0} {
		full, err := r.List(t.Context(), configMaps, namespace, metav1.ListOptions{})
		if err != nil || len(full) != want {
			t.Errorf("List of namespace %q returned %d objects, error %v, want %d", namespace, len(full), err, want)
		}
		meta, err := r.ListMetadata(t.Context(), configMaps, namespace, metav1.ListOptions{})
		if err != nil || len(meta) != want {
			t.Errorf("ListMetadata of namespace %q returned %d objects, error %v, want %d", namespace, len(meta), err, want)
		}
	}
	one, err := r.List(t.Context(), configMaps, "", metav1.ListOptions{FieldSelector: "metadata.name=map-3"})
	if err != nil || len(one) != 1 || one[0].GetName() != "map-3" {
		t.Errorf("List with a field selector returned %v, error %v, want map-3", one, err)
	}
	got, err := r.Get(t.Context(), configMaps, "one", "map-2")
	if err != nil || got.Object["data"] == nil {
		t.Errorf("Get returned %v, error %v, want map-2 with its data", got, err)
	}
	if got, err := r.Get(t.Context(), configMaps, "two", "map-2"); got != nil || err != nil {
		t.Errorf("Get of a missing object returned %v, error %v, want nil for both", got, err)
	}
	if none, err := r.List(t.Context(), Kind{}, "", metav1.ListOptions{}); len(none) > 0 || err != nil {
		t.Errorf("List of a kind that is not served returned %v, error %v, want nil for both", none, err)
	}
	if none, err := r.Get(t.Context(), Kind{}, "one", "map-2"); none != nil || err != nil {
		t.Errorf("Get of a kind that is not served returned %v, error %v, want nil for both", none, err)
	}
	if lines := r.Lines(); len(lines) > 0 {
		t.Errorf("got gaps %q after successful requests, want none", lines)
	}
	cluster.Forbid(func(r fakecluster.Request) bool { return r.Verb == "list" })
	if _, err := r.List(t.Context(), configMaps, "", metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("List returned error %v, want Forbidden", err)
	}
	if _, err := r.WithGaps(nil).ListMetadata(t.Context(), configMaps, "one", metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("ListMetadata returned error %v, want Forbidden", err)
	}
	if lines := r.Lines(); !slices.Equal(lines, []string{"not allowed to list configmaps in all namespaces"}) {
		t.Errorf("got gaps %q, want %q", lines, []string{"not allowed to list configmaps in all namespaces"})
	}
}

func TestGaps(t *testing.T) {
	resource := schema.GroupResource{Resource: "things"}
	forbidden := apierrors.NewForbidden(resource, "", errors.New("no role"))
	deployments := Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Resource: "deployments", Namespaced: true}
	nodes := Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Resource: "nodes"}
	r := Reader{Gaps: &Gaps{}}
	for range 2 {
		for _, err := range []error{
			r.recordGap("list", deployments, "", "", forbidden), r.recordGap("get", deployments, "team", "web", forbidden), r.recordGap("list", nodes, "", "", forbidden),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("recordGap returned error %v, want Forbidden", err)
			}
		}
	}
	for _, ignored := range []error{nil, apierrors.NewNotFound(resource, "a"), apierrors.NewMethodNotSupported(resource, "list")} {
		if err := r.recordGap("list", nodes, "", "", ignored); err != nil {
			t.Errorf("recordGap returned error %v for %v, want nil", err, ignored)
		}
	}
	_ = r.recordGap("list", deployments, "team", "", fmt.Errorf("request: %w", errors.New("connection refused")))
	r.Failed = []string{"ray.io/v1"}
	want := []string{
		"deployments.apps in namespace team could not be read: connection refused", "not allowed to get deployments.apps/web in namespace team",
		"not allowed to list deployments.apps in all namespaces", "not allowed to list nodes", "the API ray.io/v1 does not answer",
	}
	if got := r.Notes(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
