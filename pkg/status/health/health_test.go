package health

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

func TestOfKindWithoutSpecialRules(t *testing.T) {
	checkExamples(t, []example{
		{
			name: "without a status",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
`,
			want: Verdict{State: Healthy},
		},
		{
			name: "ready",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a, generation: 2}
status:
  observedGeneration: 2
  conditions:
  - {type: Ready, status: "True", reason: Fine, message: all is well, lastTransitionTime: "2026-05-01T08:00:00Z"}
`,
			want: Verdict{State: Healthy, Reason: "Fine", Message: "all is well", Since: atHour(8)},
		},
		{
			name: "not ready",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
status:
  conditions:
  - {type: Ready, status: "False", reason: Broken, message: it does not work}
`,
			want: Verdict{State: Failed, Reason: "Broken", Message: "it does not work"},
		},
		{
			name: "not ready and progressing",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
status:
  conditions:
  - {type: Progressing, status: "True", reason: Starting}
  - {type: Ready, status: "False", reason: Starting, message: wait}
`,
			want: Verdict{State: Progressing, Reason: "Starting", Message: "wait"},
		},
		{
			name: "readiness unknown",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
status:
  conditions:
  - {type: Ready, status: Unknown, reason: Starting}
`,
			want: Verdict{State: Progressing, Reason: "Starting"},
		},
		{
			name: "available",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
status:
  conditions:
  - {type: Available, status: "True", reason: Up}
`,
			want: Verdict{State: Healthy, Reason: "Up"},
		},
		{
			name: "condition of a previous generation",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a, generation: 3}
status:
  conditions:
  - {type: Ready, status: "True", reason: Fine, observedGeneration: 2}
`,
			want: Verdict{State: Progressing, Reason: "Fine", Message: "the controller has not processed the last change yet"},
		},
		{
			name: "status of a previous generation",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a, generation: 3}
status: {observedGeneration: 2}
`,
			want: Verdict{State: Progressing, Reason: "LatestGenerationNotObserved", Message: "Thing generation is 3, but latest observed generation is 2"},
		},
		{
			name: "ready and stalled",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
status:
  conditions:
  - {type: Ready, status: "True"}
  - {type: Stalled, status: "True", reason: NoWay, message: it cannot continue}
`,
			want: Verdict{State: Degraded, Reason: "NoWay", Message: "it cannot continue"},
		},
		{
			name: "ready and degraded",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
status:
  conditions:
  - {type: Ready, status: "True"}
  - {type: Degraded, status: "True", reason: Slow, message: one disk is gone}
`,
			want: Verdict{State: Degraded, Reason: "Slow", Message: "one disk is gone"},
		},
		{
			name: "ready and not degraded",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
status:
  conditions:
  - {type: Ready, status: "True", reason: Fine}
  - {type: Degraded, status: "False", reason: Fast}
  - {type: Progressing, status: "False", reason: Done}
`,
			want: Verdict{State: Healthy, Reason: "Fine"},
		},
		{
			name: "ready, with a False condition of severity Info",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
status:
  conditions:
  - {type: Ready, status: "True", reason: Fine}
  - {type: Extra, status: "False", severity: Info}
`,
			want: Verdict{State: Healthy, Reason: "Fine"},
		},
		{
			name: "ready, with False conditions of progress and pressure",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
status:
  conditions:
  - {type: Ready, status: "True", reason: Fine}
  - {type: Issuing, status: "False", reason: Issued}
  - {type: UpgradeInProgress, status: "False", reason: NoPendingCluster}
  - {type: MemoryPressure, status: "False", reason: Enough}
  - {type: NetworkUnavailable, status: "False", reason: RouteCreated}
`,
			want: Verdict{State: Healthy, Reason: "Fine"},
		},
		{
			name: "ready and failing",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
status:
  conditions:
  - {type: Ready, status: "True"}
  - {type: Failing, status: "True", reason: Slow}
`,
			want: Verdict{State: Degraded, Reason: "Slow"},
		},
		{
			name: "paused",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a, annotations: {platform.opendatahub.io/paused: "true"}}
status:
  conditions:
  - {type: Paused, status: "True", reason: Annotation}
  - {type: Ready, status: "False", reason: Broken}
`,
			want: Verdict{State: Failed, Reason: "Broken", Paused: true},
		},
		{
			name: "paused annotation with an invalid value",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a, annotations: {platform.opendatahub.io/paused: "perhaps"}}
`,
			want: Verdict{State: Healthy},
		},
		{
			name: "invalid conditions",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
status: {conditions: [ready, 3, {type: 7}], observedGeneration: two}
`,
			want: Verdict{State: Unknown, Message: "the status has an unexpected form"},
		},
	})
}

func TestTerminatingObjectsAreDeleting(t *testing.T) {
	checkExamples(t, []example{
		{
			name: "without finalizers",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata: {name: a, deletionTimestamp: "2026-05-01T08:00:00Z"}
`,
			want: Verdict{State: Deleting, Reason: "Terminating", Message: "it is being deleted", Since: atHour(8)},
		},
		{
			name: "with finalizers",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata:
  name: a
  deletionTimestamp: "2026-05-01T08:00:00Z"
  finalizers: [example.com/one, example.com/two]
status:
  conditions:
  - {type: Ready, status: "True", message: all is well}
`,
			want: Verdict{State: Deleting, Reason: "Terminating", Since: atHour(8), Message: "it is being deleted and waits for example.com/one, example.com/two"},
		},
		{
			name: "not ready, while paused",
			object: `
apiVersion: example.com/v1
kind: Thing
metadata:
  name: a
  deletionTimestamp: "2026-05-01T08:00:00Z"
  finalizers: [example.com/one]
  annotations: {platform.opendatahub.io/paused: "true"}
status:
  conditions:
  - {type: Ready, status: "False", reason: Busy, message: models are left}
`,
			want: Verdict{
				State: Deleting, Reason: "Terminating", Since: atHour(8), Paused: true,
				Message: "it is being deleted and waits for example.com/one: models are left",
			},
		},
	})
}

func TestStateRankAndOK(t *testing.T) {
	byRank := []State{Failed, Degraded, Unknown, Progressing, Deleting, Idle, Healthy}
	for i, state := range byRank {
		if state.Rank() != i {
			t.Errorf("%s: got rank %d, want %d", state, state.Rank(), i)
		}
		if want := state == Healthy || state == Idle; state.OK() != want {
			t.Errorf("%s: got OK %t, want %t", state, state.OK(), want)
		}
	}
}

// Every evaluator returns a state, even for objects whose fields have arbitrary types.
func TestOfReturnsStateForArbitraryFields(t *testing.T) {
	kinds := []schema.GroupKind{{Group: "example.com", Kind: "Thing"}}
	for kind := range evaluators {
		kinds = append(kinds, kind)
	}
	values := []any{nil, true, "True", "text", int64(3), 1.5, []any{}, []any{"a", map[string]any{"type": "Ready"}}, map[string]any{}, map[string]any{"conditions": "none"}}
	fields := []string{
		"phase", "state", "conditions", "replicas", "suspend", "modelStatus", "transitionStatus", "lastFailureInfo", "parents", "ingress",
		"containerStatuses", "observedGeneration", "sources", "available", "multiModel", "containers", "active", "loadBalancer",
	}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		drawFields := func(label string) map[string]any {
			out := map[string]any{}
			for _, field := range rapid.SliceOfN(rapid.SampledFrom(fields), 0, 6).Draw(t, label) {
				out[field] = rapid.SampledFrom(values).Draw(t, field)
			}
			return out
		}
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": kind.Group + "/v1", "kind": kind.Kind, "spec": drawFields("spec"), "status": drawFields("status"),
		}}
		if kind.Group == "" {
			u.SetAPIVersion("v1")
		}
		if got := Of(u); got.State == "" {
			t.Fatalf("Of returned no state for %v", u.Object)
		}
	})
}
