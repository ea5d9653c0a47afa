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

// slackFixture is a cluster with a slack queue, and records writes.
type slackFixture struct {
	t *testing.T
	client.Client
	queue  *slackQueue
	writes int
	fail   error
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
	w := &slackFixture{t: t}
	objects := []client.Object{queue}
	for _, node := range nodes {
		objects = append(objects, node)
	}
	w.Client = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			w.writes++
			if w.fail != nil {
				return w.fail
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	w.queue = &slackQueue{name: "slack", taints: defaultTaints, nodes: w, queues: w, writer: w,
		served: func() capability.Set { return capability.NewSet(kind) }}
	return w
}

func (f *slackFixture) reconcileOnce() error {
	_, err := f.queue.Reconcile(f.t.Context(), reconcile.Request{})
	return err
}

// lendingLimit returns the lending limit of GPUs in the first flavor, or "none". A second reconcile must not write.
func (f *slackFixture) lendingLimit() string {
	f.t.Helper()
	if err := f.reconcileOnce(); err != nil {
		f.t.Fatal(err)
	}
	before := f.writes
	if err := f.reconcileOnce(); err != nil || f.writes != before {
		f.t.Errorf("a second pass wrote: %v", err)
	}
	found := f.read()
	limit := nested.At(firstQuota(found), "lendingLimit")
	if limit == nil {
		return "none"
	}
	text, ok := limit.(string)
	if !ok {
		f.t.Fatalf("the limit is %v", limit)
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

func (f *slackFixture) node(name string, change func(*corev1.Node)) {
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

// [appwrapper-25] The limits follow the nodes and the quota, in both versions of the queue.
func TestSlackQueueFollowsNodes(t *testing.T) {
	for _, kind := range queueKinds {
		t.Run(kind.Version, func(t *testing.T) {
			w := newSlackFixture(t, kind, gpuQuota, gpuNode("a", nil), gpuNode("b", nil), gpuNode("c", nil))
			expect := func(description, want string) {
				t.Helper()
				if got := w.lendingLimit(); got != want {
					t.Errorf("%s: the limit is %s, want %s", description, got, want)
				}
			}
			expect("all well", "none")
			w.node("a", labelled("EVICT"))
			expect("EVICT on one of them", "2")
			w.node("b", labelled("TESTING"))
			expect("TESTING on another", "0")
			w.node("b", labelled("OK"))
			expect("recovery of one", "2")
			w.node("a", labelled("OK"))
			expect("recovery of both", "none")
			w.node("a", cordoned)
			expect("cordon", "2")
			queue := w.read()
			firstQuota(queue)["nominalQuota"] = "8"
			if err := w.Update(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			expect("a quota of 8", "4")
			if err := w.Delete(t.Context(), gpuNode("c", nil)); err != nil {
				t.Fatal(err)
			}
			expect("a healthy node deleted", "4")
			if err := w.Delete(t.Context(), gpuNode("a", nil)); err != nil {
				t.Fatal(err)
			}
			expect("the cordoned node deleted", "none")
			if text := mustText(t, w.read()); strings.Contains(text, "lendingLimit") {
				t.Errorf("another flavor or group got a limit:\n%s", text)
			}
		})
	}
}

func mustText(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Conditions under which a reconcile does nothing or fails.
func TestSlackQueueReconciles(t *testing.T) {
	unhealthy := gpuNode("a", cordoned)
	for _, test := range []struct {
		name   string
		change func(*slackFixture)
		writes int
		want   string
	}{
		{"Kueue is not there", func(w *slackFixture) { w.queue.served = func() capability.Set { return capability.NewSet() } }, 0, ""},
		{"no queue of that name", func(w *slackFixture) { w.queue.name = "other" }, 0, ""},
		{"no cohort", func(w *slackFixture) {
			queue := w.read()
			unstructured.RemoveNestedField(queue.Object, "spec", "cohort")
			if err := w.Update(w.t.Context(), queue); err != nil {
				w.t.Fatal(err)
			}
		}, 0, ""},
		{"another client was faster", func(w *slackFixture) { w.fail = apierrors.NewConflict(schema.GroupResource{}, "slack", nil) }, 1, ""},
		{"no rights", func(w *slackFixture) { w.fail = apierrors.NewForbidden(schema.GroupResource{}, "slack", nil) }, 1, "setting the lending limits of ClusterQueue slack"},
		{"nodes cannot be listed", func(w *slackFixture) { w.queue.nodes = broken{} }, 0, "listing nodes"},
		{"the queue cannot be read", func(w *slackFixture) { w.queue.queues = broken{} }, 0, "config/components/appwrapper-slack-queue"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newSlackFixture(t, capability.KueueClusterQueue, gpuQuota, unhealthy.DeepCopy())
			test.change(w)
			err := w.reconcileOnce()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if w.writes != test.writes {
				t.Errorf("%d writes, want %d", w.writes, test.writes)
			}
		})
	}
}

type broken struct{ client.Reader }

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("away")
}

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("away")
}

// Single limits: written, unchanged and rejected ones.
func TestSetLendingLimits(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	for _, test := range []struct {
		name, quota, missing, want string
		changed                    bool
		err                        string
	}{
		{"nothing is missing", "{nominalQuota: 6}", "0", "{nominalQuota: 6}", false, ""},
		{"nothing is missing any more", "{nominalQuota: 6, lendingLimit: 2}", "0", "{nominalQuota: 6}", true, ""},
		{"some is missing", "{nominalQuota: 6}", "4", `{nominalQuota: 6, lendingLimit: "2"}`, true, ""},
		{"the same written otherwise", "{nominalQuota: 6, lendingLimit: 2000m}", "4", "{nominalQuota: 6, lendingLimit: 2000m}", false, ""},
		{"more than there is", `{nominalQuota: "6"}`, "40", `{nominalQuota: "6", lendingLimit: "0"}`, true, ""},
		{"memory", "{nominalQuota: 6Gi}", "4Gi", "{nominalQuota: 6Gi, lendingLimit: 2Gi}", true, ""},
		{"a limit that cannot be read", "{nominalQuota: 6, lendingLimit: some}", "4", `{nominalQuota: 6, lendingLimit: "2"}`, true, ""},
		{"a quota that cannot be read", "{nominalQuota: many}", "4", "", false, "quota of nvidia.com/gpu in ClusterQueue q: nominalQuota"},
		{"no quota", "{}", "4", "", false, "nominalQuota <nil>: quantities must match"},
	} {
		t.Run(test.name, func(t *testing.T) {
			queue := objectOf(t, "{metadata: {name: q}, spec: {resourceGroups: [{flavors: [{resources: [x, "+strings.Replace(test.quota, "{", "{name: "+gpu+", ", 1)+"]}]}]}}")
			var missing corev1.ResourceList
			if err := yaml.Unmarshal([]byte("{"+gpu+": "+test.missing+"}"), &missing); err != nil {
				t.Fatal(err)
			}
			changed, err := setLendingLimits(queue, missing)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want %q", err, test.err)
				}
				return
			}
			want := objectOf(t, "{metadata: {name: q}, spec: {resourceGroups: [{flavors: [{resources: [x, "+strings.Replace(test.want, "{", "{name: "+gpu+", ", 1)+"]}]}]}}")
			if err != nil || changed != test.changed || mustText(t, queue) != mustText(t, want) {
				t.Errorf("changed %t, %v:\n%s", changed, err, mustText(t, queue))
			}
		})
	}
	for _, text := range []string{"{}", "{spec: {resourceGroups: x}}", "{spec: {resourceGroups: []}}", "{spec: {resourceGroups: [{flavors: [{resources: 5}]}]}}"} {
		if changed, err := setLendingLimits(objectOf(t, text), corev1.ResourceList{}); changed || err != nil {
			t.Errorf("%s: unexpected changed %t, error %v", text, changed, err)
		}
	}
}

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	// YAML decodes numbers as floats; the API machinery decodes whole ones as integers.
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
