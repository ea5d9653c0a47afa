package appwrapper

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

const trainJob = "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: t}, spec: {runtimeRef: {name: torch}, trainer: {numNodes: 4, " +
	"resourcesPerNode: {limits: {nvidia.com/gpu: '8'}}}, podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelector: {a: b}}}]}}"

// Components that may exceed their quota or are never started are rejected with a queue label, and cause a warning without one. An update
// that adds a queue label is rejected too.
func TestQueuedAppWrappers(t *testing.T) {
	unknownField := strings.Replace(pod, "spec: {", "spec: {tomorrow: 1, ", 1)
	autoscaling := strings.Replace(rayCluster, "spec: {", "spec: {enableInTreeAutoscaling: true, ", 1)
	suspended := strings.Replace(rayCluster, "spec: {", "spec: {suspend: true, ", 1)
	for name, tc := range map[string]struct{ template, wantField, wantMessage string }{
		"suspended RayCluster":                    {suspended, "spec.components[0].template.spec.suspend: ", "use spec.suspend of the AppWrapper"},
		"RayJob without shutdownAfterJobFinishes": {rayJob, "spec.components[0].template.spec.shutdownAfterJobFinishes: ", "must be true in a queue: otherwise the pods of the cluster keep running"},
		"RayCluster with autoscaling":             {autoscaling, "spec.components[0].template.spec.enableInTreeAutoscaling: ", "must not be true in a queue"},
		"unknown field in a pod template":         {unknownField, "spec.components[0]: ", `unknown field "tomorrow"`},
	} {
		t.Run(name, func(t *testing.T) {
			v := newValidator(newCluster())
			notQueued := newAppWrapper(t, component(tc.template))
			response := v.Handle(t.Context(), newRequest(t, admissionv1.Create, notQueued, nil))
			if warnings := strings.Join(response.Warnings, "\n"); !response.Allowed || !strings.Contains(warnings, tc.wantField) || !strings.Contains(warnings, tc.wantMessage) || strings.Contains(warnings, "Kueue") {
				t.Errorf("create without a queue: got result %+v, warnings %s, want it allowed with a warning for the field", response.Result, warnings)
			}
			queued := newAppWrapper(t, component(tc.template))
			queued.Labels = map[string]string{v1beta2.LabelQueue: "q"}
			for operation, old := range map[admissionv1.Operation]*v1beta2.AppWrapper{admissionv1.Create: nil, admissionv1.Update: notQueued} {
				response := v.Handle(t.Context(), newRequest(t, operation, queued, old))
				if response.Allowed || !strings.Contains(response.Result.Message, tc.wantField) || !strings.Contains(response.Result.Message, tc.wantMessage) {
					t.Errorf("%s with a queue: got allowed %t, result %+v, want it rejected with the field", operation, response.Allowed, response.Result)
				}
			}
			// An AppWrapper that was queued before the update is not checked again.
			if response := v.Handle(t.Context(), newRequest(t, admissionv1.Update, queued, queued)); !response.Allowed {
				t.Errorf("update of a queued AppWrapper: got result %+v, want it allowed", response.Result)
			}
		})
	}
	dotted := newAppWrapper(t, component(pod))
	dotted.Name = "a.b"
	queued := dotted.DeepCopy()
	queued.Labels = map[string]string{v1beta2.LabelQueue: "q"}
	response := newValidator(newCluster()).Handle(t.Context(), newRequest(t, admissionv1.Update, queued, dotted))
	if response.Allowed || !strings.Contains(response.Result.Message, "must have no dots") {
		t.Errorf("queue label for a name with a dot: got allowed %t, result %+v, want it rejected", response.Allowed, response.Result)
	}
	valid := newAppWrapper(t, component(strings.Replace(rayJob, "spec: {", "spec: {shutdownAfterJobFinishes: true, ", 1)))
	valid.Labels = map[string]string{v1beta2.LabelQueue: "q"}
	if response := newValidator(newCluster()).Handle(t.Context(), newRequest(t, admissionv1.Create, valid, nil)); !response.Allowed || len(response.Warnings) > 0 {
		t.Errorf("valid RayJob: got result %+v, warnings %q, want it allowed without warnings", response.Result, response.Warnings)
	}
}

// A TrainJob is rejected with one error, because Kueue would admit it without quota.
func TestTrainJobsAreRejected(t *testing.T) {
	for _, text := range []string{component(trainJob), component(trainJob, "{path: 'template.spec.podTemplateOverrides[0]', replicas: 4}")} {
		if got := errorStrings(newCluster().validate(t, text)); len(got) != 1 || !strings.Contains(got[0], "the pods of a TrainJob are described in its runtime") {
			t.Errorf("got errors %q, want one about the runtime of the TrainJob", got)
		}
	}
}

// A component with an error causes no additional error about missing pod sets.
func TestInvalidComponentCausesOneError(t *testing.T) {
	for name, text := range map[string]string{
		"kind that is not served": component(unservedTemplate), "empty template": component("{}"),
		"invalid replicas": component("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: many, template: {spec: {containers: []}}}}"),
	} {
		if got := errorStrings(newCluster().validate(t, text)); len(got) != 1 {
			t.Errorf("%s: got errors %q, want one", name, got)
		}
	}
	if got := errorStrings(newCluster().validate(t, component(service))); len(got) != 1 || !strings.Contains(got[0], "components contains no podspecs: add a component that creates pods") {
		t.Errorf("got errors %q, want one about missing pod specs", got)
	}
}

// Values of annotations that are invalid or treated as 0 cause a warning, and so does a ttlSecondsAfterFinished that is raised.
func TestAnnotationValuesCauseWarnings(t *testing.T) {
	for key, values := range map[string]map[string]string{
		v1beta2.AnnotationRetryLimit:        {"3": "", "-1": "", "many": "the configured limit applies", "1.5": "the configured limit applies"},
		v1beta2.AnnotationWarmupGrace:       {"90s": "", "0s": "", "soon": "is invalid and has no effect", "10": "is invalid and has no effect", "-5m": "is treated as 0"},
		v1beta2.AnnotationSuccessTTL:        {"1h": "", "0s": "a duration above 0", "-5m": "a duration above 0", "x": "is invalid and has no effect"},
		v1beta2.AnnotationTerminalExitCodes: {"1, 137": "", "": "", "a,b": `"a" is invalid`, "1,b": `"b" is invalid`},
		names.PausedAnnotation:              {"true": "", "false": "", "True": "", "yes": "", "no": "", "paused": "neither true nor false"},
		"example.com/annotation":            {"whatever": ""},
	} {
		for value, want := range values {
			wrapper := newAppWrapper(t, component(pod))
			wrapper.Annotations = map[string]string{key: value}
			got := warnings(wrapper)
			if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want) || !strings.Contains(got[0], key)) {
				t.Errorf("%s %q: got warnings %q, want %q", key, value, got, want)
			}
		}
	}
	shortTTL := newAppWrapper(t, component(strings.Replace(job("1", "1"), "parallelism", "ttlSecondsAfterFinished: 1, parallelism", 1)))
	if got := warnings(shortTTL); len(got) != 1 || !strings.Contains(got[0], "ttlSecondsAfterFinished is 1 and will be 3600") {
		t.Errorf("got warnings %q, want one about ttlSecondsAfterFinished", got)
	}
}
