package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

func TestSetVerdict(t *testing.T) {
	for want, r := range map[verdict]row{
		resilient:    {Recovery: time.Second, Bound: time.Second},
		degraded:     {Recovery: 2 * time.Second, Bound: time.Second},
		failed:       {Deviations: []string{"a Service is missing"}, Recovery: 2 * time.Second, Bound: time.Second},
		inconclusive: {Verdict: inconclusive},
	} {
		if got := r.setVerdict().Verdict; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := (row{}).requireHits(1).setVerdict().Verdict; got != resilient {
		t.Errorf("got %s for a fault that affected a request, want %s", got, resilient)
	}
	unaffected := row{}.requireHits(0)
	if got := unaffected.setVerdict(); got.Verdict != inconclusive || got.Remark == "" {
		t.Errorf("got %+v for a fault that affected no request, want %s with a remark", got, inconclusive)
	}
	unaffected.Deviations = []string{"a Service is missing"}
	if got := unaffected.setVerdict().Verdict; got != failed {
		t.Errorf("got %s for a deviation, want %s", got, failed)
	}
}

func TestFaultEndsAfterErrorOfBegin(t *testing.T) {
	ended := false
	err := (&campaign{}).inject(t.Context(), disturbance{begin: func(context.Context) (func(context.Context) error, error) {
		return func(context.Context) error { ended = true; return nil }, errNoWatch
	}})
	if !errors.Is(err, errNoWatch) || !ended {
		t.Errorf("got error %v, ended %t, want %v and true", err, ended, errNoWatch)
	}
}

func TestAddDriftRow(t *testing.T) {
	c := &campaign{testCluster: &testCluster{clock: clock.RealClock{}, progress: io.Discard}}
	c.addDriftRow("data", &tally{refused: 1, byDesign: 3, reasons: map[string]int{"b": 1, "a": 2}})
	const want = "1 refused by the API server; 2 stay by design: a; 1 stay by design: b"
	if got := c.report.Rows[0]; got.Remark != want || got.Verdict != inconclusive {
		t.Errorf("got %+v, want %s and the remark %q", got, inconclusive, want)
	}
}

func TestReport(t *testing.T) {
	r := report{Seed: 7, Started: time.Unix(0, 0), Rows: []row{
		{Scenario: "kill", Fault: "a|b", Injections: []string{"PodKill"}, Verdict: resilient, Recovery: 1500 * time.Millisecond, Bound: 10 * time.Second, Writes: 3},
		{Scenario: "crash", Injections: []string{"PodKill"}, Verdict: failed, Recovery: 12 * time.Second, Deviations: []string{"a", "b", "c", "d"}, Remark: "slowest"},
	}}
	dir := t.TempDir()
	if err := r.save(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "chaos.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Seed 7, 1970-01-01T00:00:00Z.", `| kill | a\|b | Resilient | 1.50 s | 10 s | 3 |  |`,
		"| crash |  | Failed | 12 s |  | 0 | slowest; a; b; c; and 1 more |", "| PodKill | the manager process is killed | kill, crash | Failed |", "| NamespaceDeletion |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if bad := r.failures(); len(bad) != 1 || bad[0].Scenario != "crash" {
		t.Errorf("got failures %+v, want the scenario crash", bad)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "chaos.json")); err != nil || !strings.Contains(string(text), `"seed": 7`) {
		t.Errorf("got report %s, error %v, want the seed", text, err)
	}
}

// The table lists each of the 20 types of operator-chaos once, and the classes of changes use no other type.
func TestInjections(t *testing.T) {
	var known []string
	for _, one := range injections {
		known = append(known, one.name)
	}
	if len(known) != 20 || len(slices.Compact(slices.Sorted(slices.Values(known)))) != 20 {
		t.Errorf("got %d different types, want 20", len(slices.Compact(slices.Sorted(slices.Values(known)))))
	}
	for class, types := range classes {
		for _, name := range types {
			if !slices.Contains(known, name) {
				t.Errorf("class %s has the unknown type %s", class, name)
			}
		}
	}
}

func TestSelectScenarios(t *testing.T) {
	some, err := selectScenarios("kill|crash")
	if err != nil || len(some) != 2 {
		t.Errorf("got %d scenarios and error %v, want 2", len(some), err)
	}
	if _, err := selectScenarios("nothing"); err == nil {
		t.Error("want an error for an unknown scenario")
	}
	var names []string
	for _, s := range allScenarios() {
		names = append(names, s.name)
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(names))); len(unique) != len(names) || len(names) < 30 {
		t.Errorf("got %d scenarios with %d names, want at least 30 with unique names", len(names), len(unique))
	}
}

func TestDifferences(t *testing.T) {
	service := id{kind{schema.GroupVersionKind{Version: "v1", Kind: "Service"}, true}, "a", "b"}
	secret := id{kind{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, true}, "a", "b"}
	want := snapshot{service: {".spec.type": "ClusterIP", ".spec.port": "1"}, secret: {}}
	have := snapshot{service: {".spec.type": "NodePort", ".spec.node": "2"}}
	got := differences(want, have, nil)
	if len(got) != 4 {
		t.Errorf("got differences %q, want 4", got)
	}
	if rest := differences(want, have, differingFields(want, have)); len(rest) != 0 {
		t.Errorf("got differences %q in masked fields, want none", rest)
	}
	if same := differences(want, want, nil); len(same) != 0 {
		t.Errorf("got differences %q between equal snapshots, want none", same)
	}
}

func TestRenamed(t *testing.T) {
	binding := id{kind{schema.GroupVersionKind{Group: "rbac", Kind: "ClusterRoleBinding"}, false}, "", "reg-r03-auth"}
	got := snapshot{binding: {".subjects[0].namespace": "reg-r03"}}.renamed("reg-r03")
	binding.name = "{}-auth"
	if want := (snapshot{binding: {".subjects[0].namespace": "{}"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Every CRD of this operator has a subject, or a reason for not having one.
func TestSubjectsCoverKinds(t *testing.T) {
	without := map[string]string{
		"clusterservingruntimes": "reconciled like a ServingRuntime",
	}
	covered := map[string]bool{}
	for _, s := range slices.Concat(subjects, platformSubjects) {
		f, err := s.fixture("somewhere")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range f.objects {
			plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
			covered[plural.Resource] = true
		}
		if s.ready == "" {
			t.Errorf("%s: %v", s.name, errNoReadiness)
		}
	}
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("got %d CRDs, error %v", len(files), err)
	}
	for _, file := range files {
		_, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
		if !covered[plural] && without[plural] == "" {
			t.Errorf("no subject has an object of %s", plural)
		}
	}
}

func TestOwns(t *testing.T) {
	fixtures := map[string]*fixture{}
	for _, s := range slices.Concat(subjects, platformSubjects) {
		f, err := s.fixture(s.name + "-r03")
		if err != nil {
			t.Fatal(err)
		}
		fixtures[s.name] = f
	}
	for path, want := range map[string]string{
		"/apis/mlflow.opendatahub.io/v1/mlflows/mlflow/status":                                 "mlflow",
		"/apis/apps/v1/namespaces/opendatahub/deployments/mlflow":                              "mlflow",
		"/apis/mlflow.kubeflow.org/v1/namespaces/mlflowconfig-r03/mlflowconfigs/mlflow/status": "mlflowconfig",
		"/api/v1/namespaces/registryproxy-r03/services/a":                                      "registryproxy",
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/registry-r03-auth-delegator":   "registry",
		"/api/v1/namespaces/opendatahub/secrets/webhook":                                       "",
		"/api/v1/namespaces/opendatahub/secrets/mlflow-tls":                                    "mlflow",
	} {
		q := parse(httptest.NewRequest(http.MethodPatch, path, http.NoBody))
		got := ""
		for name, f := range fixtures {
			if f.owns(q) {
				got += name
			}
		}
		if got != want {
			t.Errorf("%s belongs to fixture %q, want %q", path, got, want)
		}
	}
}

// A creation in the namespace of the manager is assigned to a fixture by the name in the request body.
func TestCrash(t *testing.T) {
	s, err := subjectNamed("mlflow")
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.fixture("")
	if err != nil {
		t.Fatal(err)
	}
	f.crash = 2
	k := &crash{fixtures: []*fixture{f}, counts: map[*fixture]int{}, now: time.Now}
	send := func(name string) (forwarded, handled bool) {
		r := httptest.NewRequest(http.MethodPost, "/apis/batch/v1/namespaces/opendatahub/jobs", strings.NewReader(`{"metadata":{"name":"`+name+`"}}`))
		x := &exchange{request: parse(r), r: r, w: httptest.NewRecorder()}
		x.forward = func(http.ResponseWriter) {
			forwarded = true
			if body, err := io.ReadAll(x.r.Body); err != nil || !strings.Contains(string(body), name) {
				t.Errorf("got body %q, error %v, want the forwarded object", body, err)
			}
		}
		defer func() {
			if recover() != nil { // panics for connections without Hijack
				handled = true
			}
		}()
		handled = k.fault(x)
		return forwarded, handled
	}
	for i, want := range []struct {
		name               string
		forwarded, handled bool
	}{
		{"of-another-client", false, false}, {"mlflow-mg-1", false, false}, {"mlflow-mg-2", true, true}, {"mlflow-mg-3", false, true},
		{"of-another-client", false, false},
	} {
		if forwarded, handled := send(want.name); forwarded != want.forwarded || handled != want.handled {
			t.Errorf("request %d, %s: got forwarded %t, handled %t, want %t, %t", i, want.name, forwarded, handled, want.forwarded, want.handled)
		}
	}
	if crashed, _ := k.crashedFixtures(); len(crashed) != 1 {
		t.Errorf("got %d fixtures at their crash, want 1", len(crashed))
	}
}

func TestNotReadyReason(t *testing.T) {
	live := func(status any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(2)}, "status": status}}
	}
	condition := func(status string, generation int64) any {
		return map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": status, "observedGeneration": generation}}}
	}
	for name, c := range map[string]struct {
		live  *unstructured.Unstructured
		ready string
		want  bool
	}{
		"true":                 {live(condition("True", 2)), "Available", true},
		"older generation":     {live(condition("True", 1)), "Available", false},
		"false":                {live(condition("False", 2)), "Available", false},
		"absent":               {live(map[string]any{}), "Available", false},
		"status field":         {live(map[string]any{"phase": "Running"}), "phase=Running", true},
		"other value":          {live(map[string]any{"phase": "Failed"}), "phase=Running", false},
		"no readiness defined": {live(map[string]any{}), "", false},
	} {
		if got := notReadyReason(c.live, c.ready); (got == "") != c.want {
			t.Errorf("%s: got reason %q, want none: %t", name, got, c.want)
		}
	}
}

func TestApplied(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"a/b": "c"}},
		"spec":     map[string]any{"replicas": int64(1), "ports": []any{map[string]any{"port": int64(80)}, map[string]any{"port": int64(443), "name": "https"}}},
	}}
	fields := `{"f:metadata":{"f:labels":{"f:a/b":{}}},"f:spec":{"f:replicas":{},"f:ports":{"k:{\"port\":443}":{"f:name":{}}}}}`
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: fieldOwners[0], Operation: metav1.ManagedFieldsOperationApply, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}})
	got, err := applied(o)
	want := []leaf{{"/metadata/labels/a~1b", "c"}, {"/spec/ports/1/name", "https"}, {"/spec/replicas", int64(1)}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, error %v, want %v", got, err, want)
	}
	var classes []string
	for _, l := range got {
		classes = append(classes, classOf(l))
	}
	if want := []string{"labels", "spec", "replicas"}; !slices.Equal(classes, want) {
		t.Errorf("got classes %q, want %q", classes, want)
	}
	c := &campaign{random: rand.New(rand.NewPCG(1, 1)), changesPerClass: 2}
	changes, err := c.changesOf(o)
	if err != nil || changes[len(changes)-1].class != "deletion" || len(changes) != 5 {
		t.Errorf("got changes %v, error %v, want 5, the last a deletion", changes, err)
	}
	for _, one := range changes {
		if one.class == "replicas" && string(one.patch) != `[{"op":"replace","path":"/spec/replicas","value":0}]` {
			t.Errorf("got patch %s, want replicas 0", one.patch)
		}
	}
}

func TestSequence(t *testing.T) {
	draw := func(seed uint64) []step {
		return sequence(rand.New(rand.NewPCG(seed, 1)), 200, []string{"a", "b"}, []string{"partition"})
	}
	if !reflect.DeepEqual(draw(1), draw(1)) || reflect.DeepEqual(draw(1), draw(2)) {
		t.Error("want equal sequences for equal seeds, and different ones for different seeds")
	}
	seen := map[string]bool{}
	for _, s := range draw(1) {
		seen[s.Do] = true
		if (s.Do == "fault") != (s.On == "partition") {
			t.Errorf("got %+v, want a partition for each fault and only for faults", s)
		}
	}
	if len(seen) != len(weights) {
		t.Errorf("got only the steps %v, want every kind", seen)
	}
}

func TestShrink(t *testing.T) {
	var steps []step
	for i := range 16 {
		steps = append(steps, step{Do: "wait", Pick: uint64(i)})
	}
	steps[3].Do, steps[12].Do = "kill", "delete"
	has := func(some []step, do string) bool {
		return slices.ContainsFunc(some, func(s step) bool { return s.Do == do })
	}
	tries := 0
	fails := func(some []step) bool { tries++; return has(some, "kill") && has(some, "delete") }
	if got := describe(shrink(steps, 1000, fails)); got != "kill, delete" {
		t.Errorf("got %s, want 'kill, delete'", got)
	}
	tries = 0
	if got := shrink(steps, 5, fails); tries > 5 || !fails(got) {
		t.Errorf("got %s after %d tries, want a failing sequence after at most 5", describe(got), tries)
	}
}

func TestIDString(t *testing.T) {
	if got := fmt.Sprint(id{kind{schema.GroupVersionKind{Kind: "Namespace"}, false}, "", "a"}); got != "Namespace/a" {
		t.Errorf("got %s, want Namespace/a", got)
	}
}
