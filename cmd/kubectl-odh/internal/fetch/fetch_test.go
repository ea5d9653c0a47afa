package fetch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/odh-platform/odh-platform-operator/test/fakecluster"
)

func TestEach(t *testing.T) {
	var done, busy, most atomic.Int64
	var mu sync.Mutex
	release := make(chan struct{})
	items := make([]int, 50)
	for i := range items {
		items[i] = i
	}
	var seen []int
	go func() { close(release) }()
	Each(items, func(i int) {
		now := busy.Add(1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		<-release
		mu.Lock()
		seen = append(seen, i)
		mu.Unlock()
		done.Add(1)
		busy.Add(-1)
	})
	slices.Sort(seen)
	if done.Load() != 50 || !slices.Equal(seen, items) {
		t.Errorf("%d of 50 tasks had ended: %v", done.Load(), seen)
	}
	if most.Load() > atOnce {
		t.Errorf("%d tasks at once", most.Load())
	}
	Each(nil, func(int) { t.Error("a task for nothing") })
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

func someMaps(count int) []unstructured.Unstructured {
	var out []unstructured.Unstructured
	for i := range count {
		u := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}}}
		u.SetNamespace([]string{"one", "two"}[i%2])
		u.SetName(fmt.Sprintf("map-%d", i))
		out = append(out, u)
	}
	return out
}

func TestLists(t *testing.T) {
	cluster := fakecluster.Start(t, fakecluster.Kubernetes(), someMaps(7))
	cluster.Page(2)
	r := reader(t, cluster)
	for namespace, want := range map[string]int{"": 7, "one": 4, "two": 3, "three": 0} {
		whole, err := r.List(t.Context(), configMaps, namespace, metav1.ListOptions{})
		if err != nil || len(whole) != want {
			t.Errorf("%q: %d objects, %v", namespace, len(whole), err)
		}
		meta, err := r.ListMetadata(t.Context(), configMaps, namespace, metav1.ListOptions{})
		if err != nil || len(meta) != want {
			t.Errorf("%q: metadata of %d objects, %v", namespace, len(meta), err)
		}
	}
	one, err := r.List(t.Context(), configMaps, "", metav1.ListOptions{FieldSelector: "metadata.name=map-3"})
	if err != nil || len(one) != 1 || one[0].GetName() != "map-3" {
		t.Errorf("%v, %v", one, err)
	}
	got, err := r.Get(t.Context(), configMaps, "one", "map-2")
	if err != nil || got.Object["data"] == nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := r.Get(t.Context(), configMaps, "two", "map-2"); got != nil || err != nil {
		t.Errorf("it does not exist: %v, %v", got, err)
	}
	if none, err := r.List(t.Context(), Kind{}, "", metav1.ListOptions{}); len(none) > 0 || err != nil {
		t.Errorf("the kind is not served: %v, %v", none, err)
	}
	if none, err := r.Get(t.Context(), Kind{}, "one", "map-2"); none != nil || err != nil {
		t.Errorf("the kind is not served: %v, %v", none, err)
	}
	if lines := r.Lines(); len(lines) > 0 {
		t.Errorf("everything was answered: %q", lines)
	}
	cluster.Forbid(func(r fakecluster.Request) bool { return r.Verb == "list" })
	if _, err := r.List(t.Context(), configMaps, "", metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	if _, err := r.Noting(nil).ListMetadata(t.Context(), configMaps, "one", metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	if lines := r.Lines(); !slices.Equal(lines, []string{"not allowed to list configmaps in all namespaces"}) {
		t.Errorf("%q", lines)
	}
}

func TestGaps(t *testing.T) {
	resource := schema.GroupResource{Resource: "things"}
	forbidden := apierrors.NewForbidden(resource, "", errors.New("no role"))
	missing := apierrors.NewNotFound(resource, "a")
	away := fmt.Errorf("asking: %w", errors.New("connection refused"))

	var g Gaps
	if err := g.Unanswered(); err != nil || len(g.Lines()) != 0 {
		t.Errorf("nothing was asked: %v, %v", err, g.Lines())
	}
	r := Reader{Gaps: &g}
	deployments := Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Resource: "deployments", Namespaced: true}
	pods, nodes := Kind{Resource: "pods", Namespaced: true}, Kind{Resource: "nodes"}
	for range 2 {
		if err := r.outcome("list", pods, "", "", away); !errors.Is(err, away) {
			t.Errorf("a failure went well: %v", err)
		}
	}
	if err := g.Unanswered(); err == nil || err.Error() != "the cluster does not answer: asking: connection refused" {
		t.Error(err)
	}
	if err := r.outcome("get", deployments, "team", "web", missing); err != nil {
		t.Errorf("what is not there is an answer: %v", err)
	}
	if err := r.outcome("get", deployments, "team", "web", nil); err != nil {
		t.Error(err)
	}
	if err := g.Unanswered(); err != nil {
		t.Errorf("something was answered: %v", err)
	}
	for range 2 {
		for _, err := range []error{
			r.outcome("list", deployments, "", "", forbidden), r.outcome("list", deployments, "team", "", forbidden), r.outcome("get", deployments, "team", "web", forbidden),
			r.outcome("get", deployments, "team", "api", forbidden), r.outcome("list", nodes, "", "", forbidden), r.outcome("list", nodes, "team", "", forbidden),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%v", err)
			}
		}
	}
	g.Note(&Gap{Verb: "read", Resource: "the log of a pod", Err: forbidden})
	want := []string{
		"not allowed to get deployments.apps/api, deployments.apps/web in namespace team", "not allowed to list deployments.apps in all namespaces",
		"not allowed to list deployments.apps in namespace team", "not allowed to list nodes", "not allowed to read the log of a pod",
		"pods could not be read: connection refused",
	}
	if got := g.Lines(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := g.All()[2].Error(); got != "not allowed to list deployments.apps in all namespaces" {
		t.Errorf("a gap alone: %q", got)
	}
	r.Failed = []string{"ray.io/v1"}
	if got := r.Notes(); len(got) != len(want)+1 || got[len(want)] != "the API ray.io/v1 does not answer" {
		t.Errorf("%q", got)
	}
}

func TestAnsweredInWords(t *testing.T) {
	for name, err := range map[string]error{
		"forbidden": apierrors.NewForbidden(schema.GroupResource{}, "", nil),
		"not there": apierrors.NewNotFound(schema.GroupResource{}, ""),
		"no list":   apierrors.NewMethodNotSupported(schema.GroupResource{}, "list"),
	} {
		var g Gaps
		_ = Reader{Gaps: &g}.outcome("list", Kind{}, "", "", err)
		if got := g.Unanswered(); got != nil {
			t.Errorf("%s: %v", name, got)
		}
		if lines := strings.Join(g.Lines(), ""); (lines != "") != (name == "forbidden") {
			t.Errorf("%s: %q", name, lines)
		}
	}
}

func TestMapKeepsTheOrder(t *testing.T) {
	if got := Map([]int{1, 2, 3}, func(i int) string { return fmt.Sprint(i * i) }); !slices.Equal(got, []string{"1", "4", "9"}) {
		t.Errorf("%q", got)
	}
}
