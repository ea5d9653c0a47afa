package nodes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/yaml"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

var defaultTaints = config.DefaultAppWrapper().Autopilot.ResourceTaints

// gpuNode returns a node with four GPUs and changes.
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

// inWords formats health for comparison.
func inWords(h health) string {
	amounts := map[string]string{}
	for name, amount := range h.unavailable {
		amounts[string(name)] = amount.String()
	}
	return fmt.Sprintf("leave %v, unavailable %v", sets.List(h.noExecute), amounts)
}

// [appwrapper-22] [appwrapper-23] [appwrapper-24] The health of nodes, also of trimmed ones.
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
			slim, err := trimNode(node.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			kept := slim.(*corev1.Node)
			if got := inWords(healthOf(kept, defaultTaints)); got != test.want {
				t.Errorf("kept object: %s, want %s", got, test.want)
			}
			if len(kept.Annotations)+len(kept.Status.Images)+len(kept.Status.Allocatable) != 0 || kept.Name != "n" {
				t.Errorf("kept too much or too little: %+v", kept)
			}
		})
	}
	if same, err := trimNode("a tombstone"); err != nil || same != "a tombstone" {
		t.Errorf("trimNode of a tombstone returned %v, error %v, want it unchanged", same, err)
	}
}

// [D26] Amounts in different notations are equal.
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
		t.Error("equal ignores a difference, or finds one between healthy nodes")
	}
}

// Heartbeats and foreign labels do not enqueue.
func TestHealthChanged(t *testing.T) {
	changed := healthChanged(defaultTaints)
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
		if got := changed.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
	if !changed.Update(event.UpdateEvent{ObjectOld: &corev1.Pod{}, ObjectNew: before}) || !changed.Create(event.CreateEvent{Object: before}) {
		t.Error("the predicate ignored a new node, or an object that is no Node")
	}
}

// [appwrapper-22] [appwrapper-23] NoExecute follows the labels of a node, and only its changes enqueue.
func TestNoExecute(t *testing.T) {
	node := gpuNode("n1", nil)
	c := fake.NewClientBuilder().WithObjects(node).Build()
	n := &Nodes{reader: c, taints: defaultTaints}
	wakes := noExecuteChanged(defaultTaints)
	change := func(description string, f func(*corev1.Node), notifies bool, resources ...string) {
		t.Helper()
		before := node.DeepCopy()
		f(node)
		if err := c.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		if got := sets.List(n.NoExecute("n1")); !slices.Equal(got, resources) {
			t.Errorf("%s: leave %v, want %v", description, got, resources)
		}
		if got := wakes.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: node}); got != notifies {
			t.Errorf("%s: enqueued: %t, want %t", description, got, notifies)
		}
	}
	if n.NoExecute("n1").Len() != 0 || n.NoExecute("unknown").Len() != 0 || wakes.Create(event.CreateEvent{Object: node}) {
		t.Error("a healthy or unknown node has taints or triggered a reconcile")
	}
	change("EVICT", labelled("EVICT"), true, "nvidia.com/gpu")
	if !wakes.Create(event.CreateEvent{Object: node}) || !wakes.Delete(event.DeleteEvent{Object: node}) {
		t.Error("an added or deleted unhealthy node triggered no reconcile")
	}
	change("cordoned too, which is no reason to leave", cordoned, false, "nvidia.com/gpu")
	n.NoExecute("n1").Insert("of the caller")
	change("with the caller's set changed", func(*corev1.Node) {}, false, "nvidia.com/gpu")
	change("WARN", labelled("WARN"), true)
	if wakes.Create(event.CreateEvent{Object: &corev1.Pod{}}) {
		t.Error("an object that is no Node triggered a reconcile")
	}
}

// Without Autopilot, or with monitoring disabled, nodes are not watched.
func TestSetupSwitchedOff(t *testing.T) {
	off, none := config.DefaultAppWrapper(), config.DefaultAppWrapper()
	off.Autopilot.MonitorNodes, none.Autopilot = false, nil
	for _, settings := range []config.AppWrapper{off, none} {
		if nodes, err := Setup(nil, settings, nil); nodes != nil || err != nil {
			t.Errorf("Setup returned %v, error %v, want neither", nodes, err)
		}
	}
}
