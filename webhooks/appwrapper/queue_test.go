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

// Components that exceed their quota, or never start under Kueue, are rejected with a queue label and cause a warning without one. Adding
// a queue label later is rejected too.
func TestQueuedAppWrappers(t *testing.T) {
	future := strings.Replace(pod, "spec: {", "spec: {tomorrow: 1, ", 1)
	growing := strings.Replace(rayCluster, "spec: {", "spec: {enableInTreeAutoscaling: true, ", 1)
	suspended := strings.Replace(rayCluster, "spec: {", "spec: {suspend: true, ", 1)
	for name, tc := range map[string]struct{ template, place, says string }{
		"a RayCluster that is suspended": {suspended, "spec.components[0].template.spec.suspend: ", "use spec.suspend of the AppWrapper"},
		"RayJob that keeps its cluster":  {rayJob, "spec.components[0].template.spec.shutdownAfterJobFinishes: ", "must be true in a queue: otherwise the pods of the cluster keep running"},
		"a RayCluster that grows":        {growing, "spec.components[0].template.spec.enableInTreeAutoscaling: ", "must not be true in a queue"},
		"a field of a newer Kubernetes":  {future, "spec.components[0]: ", `unknown field "tomorrow"`},
	} {
		t.Run(name, func(t *testing.T) {
			v := validatorOf(newCluster())
			free := wrapperOf(t, component(tc.template))
			response := v.Handle(t.Context(), requestOf(t, admissionv1.Create, free, nil))
			if reported := strings.Join(response.Warnings, "\n"); !response.Allowed || !strings.Contains(reported, tc.place) || !strings.Contains(reported, tc.says) || strings.Contains(reported, "Kueue") {
				t.Errorf("without a queue, the response is %+v with the warnings %s", response.Result, reported)
			}
			inQueue := wrapperOf(t, component(tc.template))
			inQueue.Labels = map[string]string{v1beta2.LabelQueue: "q"}
			for operation, old := range map[admissionv1.Operation]*v1beta2.AppWrapper{admissionv1.Create: nil, admissionv1.Update: free} {
				response := v.Handle(t.Context(), requestOf(t, operation, inQueue, old))
				if response.Allowed || !strings.Contains(response.Result.Message, tc.place) || !strings.Contains(response.Result.Message, tc.says) {
					t.Errorf("%s: allowed %t, want a rejection that names the field: %+v", operation, response.Allowed, response.Result)
				}
			}
			// An AppWrapper that is queued already can be changed.
			if response := v.Handle(t.Context(), requestOf(t, admissionv1.Update, inQueue, inQueue)); !response.Allowed {
				t.Errorf("unexpected response.Result: %+v", response.Result)
			}
		})
	}
	good := wrapperOf(t, component(strings.Replace(rayJob, "spec: {", "spec: {shutdownAfterJobFinishes: true, ", 1)))
	good.Labels = map[string]string{v1beta2.LabelQueue: "q"}
	if response := validatorOf(newCluster()).Handle(t.Context(), requestOf(t, admissionv1.Create, good, nil)); !response.Allowed || len(response.Warnings) > 0 {
		t.Errorf("a valid AppWrapper was rejected or has warnings: %+v, %q", response.Result, response.Warnings)
	}
}

// A TrainJob would be admitted without any quota. It is rejected with one error.
func TestTrainJobsAreRefused(t *testing.T) {
	for _, text := range []string{component(trainJob), component(trainJob, "{path: 'template.spec.podTemplateOverrides[0]', replicas: 4}")} {
		if got := lines(newCluster().validate(t, text)); len(got) != 1 || !strings.Contains(got[0], "the pods of a TrainJob are described in its runtime") {
			t.Errorf("got errors %q, want one about the runtime of the TrainJob", got)
		}
	}
}

// A component that cannot be decoded or is unknown causes no additional error about pod sets.
func TestOneMistakeIsOneError(t *testing.T) {
	for name, text := range map[string]string{
		"a kind that is not served": component(strange), "no template": component("{}"),
		"a wrong number": component("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: many, template: {spec: {containers: []}}}}"),
	} {
		if got := lines(newCluster().validate(t, text)); len(got) != 1 {
			t.Errorf("%s: got errors %q, want one", name, got)
		}
	}
	if got := lines(newCluster().validate(t, component(service))); len(got) != 1 || !strings.Contains(got[0], "components contains no podspecs: add a component that creates pods") {
		t.Errorf("got errors %q, want one about missing pods", got)
	}
}

// Invalid and misleading values cause a warning.
func TestValuesOfAnnotations(t *testing.T) {
	for key, values := range map[string]map[string]string{
		v1beta2.AnnotationRetryLimit:        {"3": "", "-1": "", "many": "the configured limit applies", "1.5": "the configured limit applies"},
		v1beta2.AnnotationWarmupGrace:       {"90s": "", "0s": "", "soon": "the configured period applies", "10": "the configured period applies", "-5m": "is treated as 0"},
		v1beta2.AnnotationSuccessTTL:        {"1h": "", "0s": "a duration above 0", "-5m": "a duration above 0", "x": "the configured period applies"},
		v1beta2.AnnotationTerminalExitCodes: {"1, 137": "", "": "", "a,b": `"a" is invalid`, "1,b": `"b" is invalid`},
		names.PausedAnnotation:              {"true": "", "false": "", "True": `write "true"`, "yes": `write "true"`},
		"example.com/free":                  {"whatever": ""},
	} {
		for value, want := range values {
			wrapper := wrapperOf(t, component(pod))
			wrapper.Annotations = map[string]string{key: value}
			got := warnings(wrapper)
			if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want) || !strings.Contains(got[0], key)) {
				t.Errorf("%s %q: got %q, want %q", key, value, got, want)
			}
		}
	}
	short := wrapperOf(t, component(strings.Replace(job("1", "1"), "parallelism", "ttlSecondsAfterFinished: 1, parallelism", 1)))
	if got := warnings(short); len(got) != 1 || !strings.Contains(got[0], "ttlSecondsAfterFinished is 1 and will be 3600") {
		t.Errorf("got warnings %q, want one about ttlSecondsAfterFinished", got)
	}
}
