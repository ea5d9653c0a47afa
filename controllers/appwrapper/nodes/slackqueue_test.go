package nodes

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// slackFixture is a fake API server with a slack queue. It counts writes.
type slackFixture struct {
	t *testing.T
	client.Client
	queue  *slackQueue
	writes int
	// patchErr is returned by patches, unless nil.
	patchErr error
}

func newSlackFixture(t *testing.T, kind schema.GroupVersionKind, quotas string, nodes ...*corev1.Node) *slackFixture {
	t.Helper()
	queue := resources.NewUnstructured(kind)
	if err := yaml.Unmarshal([]byte(`
metadata: {name: slack}
spec:
  cohort: all
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - {name: default, resources: `+quotas+`}
    - {name: other, resources: [{name: nvidia.com/gpu, nominalQuota: 9}]}
  - flavors: [{name: third, resources: [{name: cpu, nominalQuota: 9}]}]
`), &queue.Object); err != nil {
		t.Fatal(err)
	}
	queue.SetGroupVersionKind(kind)
	f := &slackFixture{t: t}
	objects := []client.Object{queue}
	for _, node := range nodes {
		objects = append(objects, node)
	}
	f.Client = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			f.writes++
			if f.patchErr != nil {
				return f.patchErr
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	f.queue = &slackQueue{name: "slack", taints: defaultTaints, nodes: f, queues: f, writer: f,
		served: func() capability.Set { return capability.NewSet(kind) }}
	return f
}

func (f *slackFixture) reconcileOnce() error {
	_, err := f.queue.Reconcile(f.t.Context(), reconcile.Request{})
	return err
}

// lendingLimit reconciles and returns the lending limit of GPUs in the first flavor, or "none". A second reconcile must not write.
func (f *slackFixture) lendingLimit() string {
	f.t.Helper()
	if err := f.reconcileOnce(); err != nil {
		f.t.Fatal(err)
	}
	writes := f.writes
	if err := f.reconcileOnce(); err != nil || f.writes != writes {
		f.t.Errorf("second reconcile: got %d writes, error %v, want none", f.writes-writes, err)
	}
	found := f.read()
	limit := nested.At(firstQuota(found), "lendingLimit")
	if limit == nil {
		return "none"
	}
	text, ok := limit.(string)
	if !ok {
		f.t.Fatalf("got lending limit %v, want a string", limit)
	}
	return text
}

func firstQuota(queue *unstructured.Unstructured) map[string]any {
	return nested.Map(queue.Object, "spec", "resourceGroups", "0", "flavors", "0", "resources", "0")
}

func (f *slackFixture) read() *unstructured.Unstructured {
	f.t.Helper()
	found := resources.NewUnstructured(f.queue.served().UnsortedList()[0])
	if err := f.Get(f.t.Context(), client.ObjectKey{Name: "slack"}, found); err != nil {
		f.t.Fatal(err)
	}
	return found
}

func (f *slackFixture) updateNode(name string, change func(*corev1.Node)) {
	f.t.Helper()
	node := &corev1.Node{}
	if err := f.Get(f.t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		f.t.Fatal(err)
	}
	change(node)
	if err := f.Update(f.t.Context(), node); err != nil {
		f.t.Fatal(err)
	}
}

const gpuQuota = `[{name: nvidia.com/gpu, nominalQuota: 6}]`

// [appwrapper-25] The lending limits depend on the health of nodes and the quota, in both versions of ClusterQueue.
func TestSlackQueueFollowsNodes(t *testing.T) {
	for _, kind := range clusterQueueGVKs {
		t.Run(kind.Version, func(t *testing.T) {
			f := newSlackFixture(t, kind, gpuQuota, gpuNode("a", nil), gpuNode("b", nil), gpuNode("c", nil))
			expect := func(description, want string) {
				t.Helper()
				if got := f.lendingLimit(); got != want {
					t.Errorf("%s: got lending limit %s, want %s", description, got, want)
				}
			}
			expect("healthy nodes", "none")
			f.updateNode("a", withAutopilotLabel("EVICT"))
			expect("EVICT on node a", "2")
			f.updateNode("b", withAutopilotLabel("TESTING"))
			expect("TESTING on node b", "0")
			f.updateNode("b", withAutopilotLabel("OK"))
			expect("recovery of node b", "2")
			f.updateNode("a", withAutopilotLabel("OK"))
			expect("recovery of node a", "none")
			f.updateNode("a", cordon)
			expect("cordon of node a", "2")
			queue := f.read()
			firstQuota(queue)["nominalQuota"] = "8"
			if err := f.Update(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			expect("quota of 8", "4")
			if err := f.Delete(t.Context(), gpuNode("c", nil)); err != nil {
				t.Fatal(err)
			}
			expect("healthy node deleted", "4")
			if err := f.Delete(t.Context(), gpuNode("a", nil)); err != nil {
				t.Fatal(err)
			}
			expect("cordoned node deleted", "none")
			if text := toYAML(t, f.read()); strings.Contains(text, "lendingLimit") {
				t.Errorf("got a lending limit in another flavor or group:\n%s", text)
			}
		})
	}
}

func toYAML(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A reconcile does nothing without a suitable queue, and returns errors of reads and writes except conflicts.
func TestSlackQueueReconcile(t *testing.T) {
	unhealthy := gpuNode("a", cordon)
	for _, test := range []struct {
		name   string
		change func(*slackFixture)
		writes int
		want   string
	}{
		{"ClusterQueues not served", func(f *slackFixture) { f.queue.served = func() capability.Set { return capability.NewSet() } }, 0, ""},
		{"queue does not exist", func(f *slackFixture) { f.queue.name = "other" }, 0, ""},
		{"queue without cohort", func(f *slackFixture) {
			queue := f.read()
			unstructured.RemoveNestedField(queue.Object, "spec", "cohort")
			if err := f.Update(f.t.Context(), queue); err != nil {
				f.t.Fatal(err)
			}
		}, 0, ""},
		{"conflict", func(f *slackFixture) { f.patchErr = apierrors.NewConflict(schema.GroupResource{}, "slack", nil) }, 1, ""},
		{"patch forbidden", func(f *slackFixture) { f.patchErr = apierrors.NewForbidden(schema.GroupResource{}, "slack", nil) }, 1, "setting the lending limits of ClusterQueue slack"},
		{"nodes cannot be listed", func(f *slackFixture) { f.queue.nodes = unreadable{} }, 0, "listing nodes"},
		{"queue cannot be read", func(f *slackFixture) { f.queue.queues = unreadable{} }, 0, "config/components/appwrapper-slack-queue"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newSlackFixture(t, capability.KueueClusterQueue, gpuQuota, unhealthy.DeepCopy())
			test.change(f)
			err := f.reconcileOnce()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want it to contain %q", err, test.want)
			}
			if f.writes != test.writes {
				t.Errorf("got %d writes, want %d", f.writes, test.writes)
			}
		})
	}
}

// unreadable is a reader whose reads fail.
type unreadable struct{ client.Reader }

func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("unavailable")
}

func (unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("unavailable")
}

// setLendingLimits changes a limit only if its amount differs, and rejects invalid quotas.
func TestSetLendingLimits(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	for _, test := range []struct {
		name, quota, unavailable, want string
		changed                        bool
		err                            string
	}{
		{"all available", "{nominalQuota: 6}", "0", "{nominalQuota: 6}", false, ""},
		{"all available again", "{nominalQuota: 6, lendingLimit: 2}", "0", "{nominalQuota: 6}", true, ""},
		{"some unavailable", "{nominalQuota: 6}", "4", `{nominalQuota: 6, lendingLimit: "2"}`, true, ""},
		{"equal limit in another notation", "{nominalQuota: 6, lendingLimit: 2000m}", "4", "{nominalQuota: 6, lendingLimit: 2000m}", false, ""},
		{"more unavailable than the quota", `{nominalQuota: "6"}`, "40", `{nominalQuota: "6", lendingLimit: "0"}`, true, ""},
		{"memory", "{nominalQuota: 6Gi}", "4Gi", "{nominalQuota: 6Gi, lendingLimit: 2Gi}", true, ""},
		{"invalid limit", "{nominalQuota: 6, lendingLimit: some}", "4", `{nominalQuota: 6, lendingLimit: "2"}`, true, ""},
		{"invalid quota", "{nominalQuota: many}", "4", "", false, "quota of nvidia.com/gpu in ClusterQueue q: nominalQuota"},
		{"no quota", "{}", "4", "", false, "nominalQuota <nil>: quantities must match"},
	} {
		t.Run(test.name, func(t *testing.T) {
			queue := objectOf(t, "{metadata: {name: q}, spec: {resourceGroups: [{flavors: [{resources: [x, "+strings.Replace(test.quota, "{", "{name: "+gpu+", ", 1)+"]}]}]}}")
			var unavailable corev1.ResourceList
			if err := yaml.Unmarshal([]byte("{"+gpu+": "+test.unavailable+"}"), &unavailable); err != nil {
				t.Fatal(err)
			}
			changed, err := setLendingLimits(queue, unavailable)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got error %v, want it to contain %q", err, test.err)
				}
				return
			}
			want := objectOf(t, "{metadata: {name: q}, spec: {resourceGroups: [{flavors: [{resources: [x, "+strings.Replace(test.want, "{", "{name: "+gpu+", ", 1)+"]}]}]}}")
			if err != nil || changed != test.changed || toYAML(t, queue) != toYAML(t, want) {
				t.Errorf("got changed %t, error %v, want changed %t; got\n%s\nwant\n%s", changed, err, test.changed, toYAML(t, queue), toYAML(t, want))
			}
		})
	}
	for _, text := range []string{"{}", "{spec: {resourceGroups: x}}", "{spec: {resourceGroups: []}}", "{spec: {resourceGroups: [{flavors: [{resources: 5}]}]}}"} {
		if changed, err := setLendingLimits(objectOf(t, text), corev1.ResourceList{}); changed || err != nil {
			t.Errorf("%s: got changed %t, error %v, want neither", text, changed, err)
		}
	}
}

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	// YAML decodes numbers as float64. The API machinery decodes integers as int64.
	u.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	u.SetKind("ClusterQueue")
	raw, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}
