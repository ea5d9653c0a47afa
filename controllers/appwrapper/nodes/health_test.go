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

// gpuNode returns a node with four GPUs. change may be nil.
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

func withAutopilotLabel(value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[awv1beta2.LabelAutopilot] = value }
}

func withTaint(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
	}
}

func cordon(n *corev1.Node) { n.Spec.Unschedulable = true }

// formatHealth formats health for comparison.
func formatHealth(h health) string {
	amounts := map[string]string{}
	for name, amount := range h.unavailable {
		amounts[string(name)] = amount.String()
	}
	return fmt.Sprintf("noExecute %v, unavailable %v", sets.List(h.noExecute), amounts)
}

// [appwrapper-22] [appwrapper-23] [appwrapper-24] healthOf returns the same health for a node and a trimmed node.
func TestHealthOf(t *testing.T) {
	const healthy = "noExecute [], unavailable map[]"
	for _, test := range []struct {
		name   string
		change func(*corev1.Node)
		want   string
	}{
		{"healthy", nil, healthy},
		{"EVICT", withAutopilotLabel("EVICT"), "noExecute [nvidia.com/gpu], unavailable map[nvidia.com/gpu:4]"},
		{"TESTING", withAutopilotLabel("TESTING"), "noExecute [], unavailable map[nvidia.com/gpu:4]"},
		{"WARN", withAutopilotLabel("WARN"), healthy},
		{"unknown label value", withAutopilotLabel("ERR"), healthy},
		{"EVICT without GPUs", func(n *corev1.Node) { withAutopilotLabel("EVICT")(n); delete(n.Status.Capacity, "nvidia.com/gpu") }, "noExecute [nvidia.com/gpu], unavailable map[]"},
		{"cordoned", cordon, "noExecute [], unavailable map[cpu:8 nvidia.com/gpu:4]"},
		{"cordoned and EVICT", func(n *corev1.Node) { cordon(n); withAutopilotLabel("EVICT")(n) }, "noExecute [nvidia.com/gpu], unavailable map[cpu:8 nvidia.com/gpu:4]"},
		{"unreachable", withTaint("node.kubernetes.io/unreachable"), "noExecute [], unavailable map[cpu:8 nvidia.com/gpu:4]"},
		{"not ready", withTaint("node.kubernetes.io/not-ready"), "noExecute [], unavailable map[cpu:8 nvidia.com/gpu:4]"},
		{"other taint", withTaint("node.kubernetes.io/memory-pressure"), healthy},
		{"taint with key and value of the label", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: awv1beta2.LabelAutopilot, Value: "EVICT", Effect: corev1.TaintEffectNoExecute}}
		}, healthy},
		{"terminating", func(n *corev1.Node) {
			cordon(n)
			withAutopilotLabel("EVICT")(n)
			n.DeletionTimestamp = &metav1.Time{Time: time.Unix(5, 0)}
		}, healthy},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := gpuNode("n", test.change)
			if got := formatHealth(healthOf(node, defaultTaints)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			trimmed, err := trimNode(node.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			trimmedNode := trimmed.(*corev1.Node)
			if got := formatHealth(healthOf(trimmedNode, defaultTaints)); got != test.want {
				t.Errorf("trimmed node: got %s, want %s", got, test.want)
			}
			if len(trimmedNode.Annotations)+len(trimmedNode.Status.Images)+len(trimmedNode.Status.Allocatable) != 0 || trimmedNode.Name != "n" {
				t.Errorf("got %+v, want the name, and no annotations, images and allocatable resources", trimmedNode)
			}
		})
	}
	if got, err := trimNode("a tombstone"); err != nil || got != "a tombstone" {
		t.Errorf("tombstone: got %v, error %v, want it unchanged", got, err)
	}
}

// [D26] equal compares quantities by value, such as 4 and 4000m.
func TestHealthComparesAmounts(t *testing.T) {
	a := healthOf(gpuNode("n", cordon), defaultTaints)
	b := healthOf(gpuNode("n", func(n *corev1.Node) {
		cordon(n)
		if err := yaml.Unmarshal([]byte(`{nvidia.com/gpu: 4000m, cpu: "8.0"}`), &n.Status.Capacity); err != nil {
			t.Fatal(err)
		}
	}), defaultTaints)
	if !a.equal(b) {
		t.Errorf("got %s and %s not equal, want them equal", formatHealth(a), formatHealth(b))
	}
	if a.equal(health{}) {
		t.Error("got the health of a cordoned node equal to empty health")
	}
	if !(health{}).equal(healthOf(gpuNode("n", nil), defaultTaints)) {
		t.Error("got the health of a healthy node not equal to empty health")
	}
}

// Heartbeats and labels that do not change the health do not pass the predicate.
func TestHealthChanged(t *testing.T) {
	predicate := healthChanged(defaultTaints)
	before := gpuNode("n", nil)
	for name, test := range map[string]struct {
		after *corev1.Node
		want  bool
	}{
		"heartbeat": {gpuNode("n", func(n *corev1.Node) { n.ResourceVersion = "2"; n.Labels["x"] = "y" }), false},
		"EVICT":     {gpuNode("n", withAutopilotLabel("EVICT")), true},
		"WARN":      {gpuNode("n", withAutopilotLabel("WARN")), false},
		"cordon":    {gpuNode("n", cordon), true},
	} {
		if got := predicate.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
	if !predicate.Update(event.UpdateEvent{ObjectOld: &corev1.Pod{}, ObjectNew: before}) || !predicate.Create(event.CreateEvent{Object: before}) {
		t.Error("want events of new nodes and of other objects to pass")
	}
}

// [appwrapper-22] [appwrapper-23] NoExecute depends on the labels of a node, and noExecuteChanged passes only events that change the
// result of NoExecute.
func TestNoExecute(t *testing.T) {
	node := gpuNode("n1", nil)
	c := fake.NewClientBuilder().WithObjects(node).Build()
	n := &Nodes{reader: c, taints: defaultTaints}
	predicate := noExecuteChanged(defaultTaints)
	change := func(description string, update func(*corev1.Node), wantEvent bool, wantResources ...string) {
		t.Helper()
		before := node.DeepCopy()
		update(node)
		if err := c.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		if got := sets.List(n.NoExecute("n1")); !slices.Equal(got, wantResources) {
			t.Errorf("%s: got resources %v, want %v", description, got, wantResources)
		}
		if got := predicate.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: node}); got != wantEvent {
			t.Errorf("%s: predicate: got %t, want %t", description, got, wantEvent)
		}
	}
	if n.NoExecute("n1").Len() != 0 || n.NoExecute("unknown").Len() != 0 || predicate.Create(event.CreateEvent{Object: node}) {
		t.Error("want no resources and no event for a healthy or unknown node")
	}
	change("EVICT", withAutopilotLabel("EVICT"), true, "nvidia.com/gpu")
	if !predicate.Create(event.CreateEvent{Object: node}) || !predicate.Delete(event.DeleteEvent{Object: node}) {
		t.Error("want events of the creation and deletion of an unhealthy node to pass")
	}
	change("EVICT and cordoned", cordon, false, "nvidia.com/gpu")
	n.NoExecute("n1").Insert("example.com/other")
	change("result modified by the caller", func(*corev1.Node) {}, false, "nvidia.com/gpu")
	change("WARN", withAutopilotLabel("WARN"), true)
	if predicate.Create(event.CreateEvent{Object: &corev1.Pod{}}) {
		t.Error("want the event of another object not to pass")
	}
}

// Setup returns nil without Autopilot, or with monitoring disabled.
func TestSetupWithoutMonitoring(t *testing.T) {
	monitoringDisabled, withoutAutopilot := config.DefaultAppWrapper(), config.DefaultAppWrapper()
	monitoringDisabled.Autopilot.MonitorNodes, withoutAutopilot.Autopilot = false, nil
	for _, settings := range []config.AppWrapper{monitoringDisabled, withoutAutopilot} {
		if nodes, err := Setup(nil, settings, nil); nodes != nil || err != nil {
			t.Errorf("got %v, error %v, want nil", nodes, err)
		}
	}
}
