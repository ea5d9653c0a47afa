package appwrapper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var defaultTaints = DefaultSettings().Autopilot.ResourceTaints

// gpuNode is a node with four GPUs that is what change makes of it.
func gpuNode(name string, change func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{}
	err := yaml.Unmarshal([]byte(`
metadata: {labels: {kubernetes.io/hostname: n, team: a}, annotations: {big: text}}
spec: {taints: [{key: dedicated, effect: NoSchedule}]}
status: {capacity: {nvidia.com/gpu: 4, cpu: 8, pods: 110}, allocatable: {cpu: 7}, images: [{names: [x]}]}`), node)
	if err != nil {
		panic(err)
	}
	node.Name = name
	if change != nil {
		change(node)
	}
	return node
}

func labelled(value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[awv1beta2.LabelAutopilot] = value }
}

func tainted(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
	}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// inWords writes health for comparison.
func inWords(h health) string {
	amounts := map[string]string{}
	for name, amount := range h.unavailable {
		amounts[string(name)] = amount.String()
	}
	return fmt.Sprintf("leave %v, unavailable %v", sets.List(h.noExecute), amounts)
}

// [appwrapper-22] [appwrapper-23] [appwrapper-24] What nodes say about themselves, and that what is kept of them says the same.
func TestHealthOf(t *testing.T) {
	const well = "leave [], unavailable map[]"
	for _, test := range []struct {
		name   string
		change func(*corev1.Node)
		want   string
	}{
		{"healthy", nil, well},
		{"EVICT", labelled("EVICT"), "leave [nvidia.com/gpu], unavailable map[nvidia.com/gpu:4]"},
		{"TESTING", labelled("TESTING"), "leave [], unavailable map[nvidia.com/gpu:4]"},
		{"WARN", labelled("WARN"), well},
		{"an unknown value", labelled("ERR"), well},
		{"EVICT without GPUs", func(n *corev1.Node) { labelled("EVICT")(n); delete(n.Status.Capacity, "nvidia.com/gpu") }, "leave [nvidia.com/gpu], unavailable map[]"},
		{"cordoned", cordoned, "leave [], unavailable map[cpu:8 nvidia.com/gpu:4]"},
		{"cordoned and EVICT", func(n *corev1.Node) { cordoned(n); labelled("EVICT")(n) }, "leave [nvidia.com/gpu], unavailable map[cpu:8 nvidia.com/gpu:4]"},
		{"unreachable", tainted("node.kubernetes.io/unreachable"), "leave [], unavailable map[cpu:8 nvidia.com/gpu:4]"},
		{"not ready", tainted("node.kubernetes.io/not-ready"), "leave [], unavailable map[cpu:8 nvidia.com/gpu:4]"},
		{"another taint", tainted("node.kubernetes.io/memory-pressure"), well},
		{"a taint as the label would be", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: awv1beta2.LabelAutopilot, Value: "EVICT", Effect: corev1.TaintEffectNoExecute}}
		}, well},
		{"deleted", func(n *corev1.Node) {
			cordoned(n)
			labelled("EVICT")(n)
			n.DeletionTimestamp = &metav1.Time{Time: time.Unix(5, 0)}
		}, well},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := gpuNode("n", test.change)
			if got := inWords(healthOf(node, defaultTaints)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			slim, err := slimNode(defaultTaints)(node)
			if err != nil {
				t.Fatal(err)
			}
			kept := slim.(*corev1.Node)
			if got := inWords(healthOf(kept, defaultTaints)); got != test.want {
				t.Errorf("what is kept says %s", got)
			}
			if len(kept.Annotations)+len(kept.Status.Images)+len(kept.Status.Allocatable) != 0 || kept.Labels["team"] != "" || kept.Name != "n" {
				t.Errorf("kept too much or too little: %+v", kept)
			}
		})
	}
	if same, err := slimNode(nil)("a tombstone"); err != nil || same != "a tombstone" {
		t.Errorf("got %v, %v", same, err)
	}
}

// D26: amounts that are written otherwise are the same.
func TestHealthComparesAmounts(t *testing.T) {
	a := healthOf(gpuNode("n", cordoned), defaultTaints)
	b := healthOf(gpuNode("n", func(n *corev1.Node) {
		cordoned(n)
		if err := yaml.Unmarshal([]byte(`{nvidia.com/gpu: 4000m, cpu: "8.0"}`), &n.Status.Capacity); err != nil {
			t.Fatal(err)
		}
	}), defaultTaints)
	if !a.equal(b) {
		t.Errorf("%s differs from %s", inWords(a), inWords(b))
	}
	if a.equal(health{}) || !(health{}).equal(healthOf(gpuNode("n", nil), defaultTaints)) {
		t.Error("health and no health")
	}
}

// Heartbeats and foreign labels wake nobody.
func TestHealthChanged(t *testing.T) {
	passes := healthChanged(defaultTaints)
	before := gpuNode("n", nil)
	for name, test := range map[string]struct {
		after *corev1.Node
		want  bool
	}{
		"heartbeat": {gpuNode("n", func(n *corev1.Node) { n.ResourceVersion = "2"; n.Labels["x"] = "y" }), false},
		"EVICT":     {gpuNode("n", labelled("EVICT")), true},
		"WARN":      {gpuNode("n", labelled("WARN")), false},
		"cordon":    {gpuNode("n", cordoned), true},
	} {
		if got := passes.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if !passes.Update(event.UpdateEvent{ObjectOld: &corev1.Pod{}, ObjectNew: before}) || !passes.Create(event.CreateEvent{Object: before}) {
		t.Error("what cannot be compared, and new nodes, must pass")
	}
}

// [appwrapper-22] [appwrapper-23] Passes over a node: the answer follows its label, and only news are told.
func TestNodeMonitor(t *testing.T) {
	node := gpuNode("n1", nil)
	c := fake.NewClientBuilder().WithObjects(node).Build()
	m := &nodeMonitor{reader: c, taints: defaultTaints, nodes: NewNodes()}
	var heard []string
	m.nodes.Changed(func(name string) { heard = append(heard, name) })
	pass := func(name string) {
		t.Helper()
		if _, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	change := func(f func(*corev1.Node)) {
		t.Helper()
		f(node)
		if err := c.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		pass("n1")
	}
	want := func(what string, times int, resources ...string) {
		t.Helper()
		if got := sets.List(m.nodes.NoExecute("n1")); !slices.Equal(got, resources) || len(heard) != times {
			t.Errorf("%s: leave %v, heard %v", what, got, heard)
		}
	}
	pass("n1")
	pass("unknown")
	want("healthy", 0)
	change(labelled("EVICT"))
	want("EVICT", 1, "nvidia.com/gpu")
	pass("n1")
	pass("n1")
	want("again", 1, "nvidia.com/gpu")
	change(cordoned)
	want("cordoned too, which is no reason to leave", 1, "nvidia.com/gpu")
	m.nodes.NoExecute("n1").Insert("of the caller")
	want("with the caller's set changed", 1, "nvidia.com/gpu")
	change(labelled("WARN"))
	want("WARN", 2)
	change(labelled("EVICT"))
	if err := c.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	pass("n1")
	want("deleted", 4)
	if len(m.nodes.unwell) != 0 {
		t.Errorf("remembers %v", m.nodes.unwell)
	}
}

func TestNodeMonitorReturnsErrors(t *testing.T) {
	broken := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("away")
		},
	}).Build()
	m := &nodeMonitor{reader: broken, taints: defaultTaints, nodes: NewNodes()}
	if _, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n"}}); err == nil {
		t.Error("no error")
	}
}

// D26: readers and the writer may come at once; the race detector looks on.
func TestNodesConcurrently(t *testing.T) {
	nodes := NewNodes()
	evict, well := healthOf(gpuNode("n", labelled("EVICT")), defaultTaints), health{}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 200 {
				if got := nodes.NoExecute("n"); len(got) > 1 {
					t.Errorf("got %v", got)
				}
			}
		})
	}
	for i := range 200 {
		now := well
		if i%2 == 0 {
			now = evict
		}
		if !nodes.set("n", now) {
			t.Error("no change")
		}
	}
	readers.Wait()
}

// Without Autopilot, or with monitoring off, nothing is watched.
func TestSetupNodesSwitchedOff(t *testing.T) {
	off := DefaultSettings()
	off.Autopilot.MonitorNodes = false
	none := DefaultSettings()
	none.Autopilot = nil
	for _, settings := range []Settings{off, none} {
		if nodes, err := SetupNodes(t.Context(), nil, settings, nil); nodes != nil || err != nil {
			t.Errorf("got %v, %v", nodes, err)
		}
	}
}
