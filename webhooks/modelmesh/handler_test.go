package modelmesh

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	validRuntime               = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"grpcEndpoint":"port:9000","containers":[{"name":"c","image":"i"}]}}`
	singleModelRuntime         = `{"metadata":{"name":"r","annotations":{"serving.kserve.io/autoscalerClass":"keda"}},"spec":{"multiModel":false,"containers":[{"name":"mm"}]}}`
	runtimeWithoutMultiModel   = `{"metadata":{"name":"r","annotations":{"serving.kserve.io/autoscalerClass":"keda"}},"spec":{"containers":[{"name":"mm"}]}}`
	kedaRuntime                = `{"metadata":{"name":"r","annotations":{"serving.kserve.io/autoscalerClass":"keda"}},"spec":{"multiModel":true,"grpcEndpoint":"port:9000","containers":[{"name":"c"}]}}`
	unknownClassRuntime        = `{"metadata":{"name":"r","annotations":{"serving.kserve.io/autoscalerClass":"test"}},"spec":{"multiModel":true,"grpcEndpoint":"port:9000","containers":[{"name":"c"}]}}`
	tooManyReplicas            = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"replicas":70000,"grpcEndpoint":"port:9000","containers":[{"name":"c"}]}}`
	negativeReplicas           = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"replicas":-1,"grpcEndpoint":"port:9000","containers":[{"name":"c"}]}}`
	singleModelTooManyReplicas = `{"metadata":{"name":"r"},"spec":{"multiModel":false,"replicas":70000,"containers":[{"name":"c"}]}}`
	reservedContainerName      = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"grpcEndpoint":"port:9000","containers":[{"name":"mm"}]}}`
	reservedPortName           = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"grpcEndpoint":"port:9000","containers":[{"name":"mm","ports":[{"name":"https","containerPort":1}]}]}}`
	terminatingRuntime         = `{"metadata":{"name":"r","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"multiModel":true,"containers":[]}}`
	invalidQuantity            = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"containers":[{"name":"c","resources":{"limits":{"cpu":"x"}}}]}}`

	kedaMessage              = "[keda] is not a supported autoscaler class type.\n"
	reservedContainerWarning = "no pods are created: container spec for mm is invalid: container name mm is reserved for internal use"
	reservedPortWarning      = "spec.containers[mm]: ModelMesh has a port named https: choose another name"
)

func newRequest(object, old string) admission.Request {
	r := admission.Request{}
	r.Operation, r.Namespace = admissionv1.Create, "team"
	r.Object = runtime.RawExtension{Raw: []byte(object)}
	if old != "" {
		r.Operation, r.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(old)}
	}
	return r
}

func adapters(context.Context, string) []string { return []string{"mlserver", "ovms"} }

func TestHandleAllowsOrDeniesRequests(t *testing.T) {
	cases := map[string]struct {
		object, old string
		code        int32
		// message is a prefix of the denial, warnings are prefixes of the warnings.
		message  string
		warnings []string
	}{
		"valid runtime":                                           {object: validRuntime},
		"invalid JSON":                                            {object: `{`, code: http.StatusBadRequest, message: "reading the object of the request: "},
		"JSON that is not an object":                              {object: `7`, code: http.StatusBadRequest, message: "reading the object of the request: "},
		"invalid JSON of the old object":                          {object: validRuntime, old: `[`, code: http.StatusBadRequest, message: "reading the object of the request: "},
		"single-model runtime":                                    {object: singleModelRuntime},
		"runtime without multiModel":                              {object: runtimeWithoutMultiModel},
		"unsupported class":                                       {object: kedaRuntime, code: http.StatusForbidden, message: kedaMessage},
		"valid class changed to an unsupported class":             {object: kedaRuntime, old: validRuntime, code: http.StatusForbidden, message: kedaMessage},
		"unsupported class changed to another":                    {object: kedaRuntime, old: unknownClassRuntime, code: http.StatusForbidden, message: kedaMessage},
		"unsupported class of the stored runtime":                 {object: kedaRuntime, old: kedaRuntime, warnings: []string{"metadata.annotations[serving.kserve.io/autoscalerClass]: " + strings.TrimSpace(kedaMessage)}},
		"unsupported class of a stored single-model runtime":      {object: kedaRuntime, old: singleModelRuntime, code: http.StatusForbidden, message: kedaMessage},
		"unsupported class removed":                               {object: validRuntime, old: kedaRuntime},
		"terminating runtime":                                     {object: kedaRuntime, old: terminatingRuntime},
		"create with a deletion timestamp":                        {object: strings.Replace(kedaRuntime, `"name":"r",`, `"name":"r","deletionTimestamp":"2026-01-01T00:00:00Z",`, 1), code: http.StatusForbidden, message: kedaMessage},
		"[M6] too many replicas":                                  {object: tooManyReplicas, code: http.StatusBadRequest, message: "spec.replicas: Invalid value: 70000: must be a number from 0 to 65535"},
		"[M6] negative replicas":                                  {object: negativeReplicas, code: http.StatusBadRequest, message: "spec.replicas: Invalid value: -1: must be a number from 0 to 65535"},
		"[M6] too many replicas of a single-model runtime":        {object: singleModelTooManyReplicas, code: http.StatusBadRequest, message: "spec.replicas: Invalid value: 70000"},
		"[M6] stored with too many replicas":                      {object: tooManyReplicas, old: tooManyReplicas, warnings: []string{"spec.replicas: Invalid value: 70000"}},
		"[M6] single-model runtime stored with too many replicas": {object: singleModelTooManyReplicas, old: singleModelTooManyReplicas, warnings: []string{"spec.replicas: Invalid value: 70000"}},
		"[M6] too many replicas changed to negative replicas":     {object: negativeReplicas, old: tooManyReplicas, code: http.StatusBadRequest, message: "spec.replicas: Invalid value: -1"},
		"invalid quantity":                                        {object: invalidQuantity, code: http.StatusBadRequest, message: "spec.containers cannot be read: "},
		"[M41] reserved container name":                           {object: reservedContainerName, warnings: []string{reservedContainerWarning}},
		"additional warning":                                      {object: reservedPortName, old: reservedContainerName, warnings: []string{reservedPortWarning}},
		"warning after a change to multi-model":                   {object: reservedContainerName, old: strings.Replace(reservedContainerName, "true", "false", 1), warnings: []string{reservedContainerWarning}},
		"no additional warning":                                   {object: reservedContainerName, old: reservedPortName},
		"two warnings":                                            {object: reservedPortName, warnings: []string{reservedContainerWarning, reservedPortWarning}},
		"[M1] without grpcEndpoint":                               {object: strings.Replace(validRuntime, `"grpcEndpoint":"port:9000",`, "", 1), warnings: []string{"no pods are created: "}},
		"[M43] grpcEndpoint is a number":                          {object: strings.Replace(validRuntime, "port:9000", "8085", 1), warnings: []string{"no pods are created: "}},
		"unknown server type of the adapter":                      {object: strings.Replace(validRuntime, `"multiModel"`, `"builtInAdapter":{"serverType":"c"},"multiModel"`, 1), warnings: []string{"no pods are created: unrecognized built-in runtime server type c"}},
		"known server type of the adapter":                        {object: strings.ReplaceAll(strings.Replace(validRuntime, `"multiModel"`, `"builtInAdapter":{"serverType":"c"},"multiModel"`, 1), `"c"`, `"ovms"`)},
		"class none and reserved port name":                       {object: strings.Replace(reservedPortName, `"name":"r"`, `"annotations":{"serving.kserve.io/autoscalerClass":"none"}`, 1), warnings: []string{reservedContainerWarning, reservedPortWarning}},
	}
	v := &validator{adapters}
	for name, c := range cases {
		response := v.Handle(t.Context(), newRequest(c.object, c.old))
		if response.Allowed != (c.code == 0) {
			t.Errorf("%s: unexpected response: %+v", name, response)
			continue
		}
		if !response.Allowed && (response.Result.Code != c.code || !strings.HasPrefix(response.Result.Message, c.message)) {
			t.Errorf("%s: got %d %q, want %d %q", name, response.Result.Code, response.Result.Message, c.code, c.message)
		}
		if !slices.EqualFunc(response.Warnings, c.warnings, strings.HasPrefix) {
			t.Errorf("%s: warnings %q, want %q", name, response.Warnings, c.warnings)
		}
	}
}

// A denial has the field in its details, because messages about autoscaling, which clients compare, do not contain it.
func TestDenialNamesField(t *testing.T) {
	response := (&validator{adapters}).Handle(t.Context(), newRequest(kedaRuntime, ""))
	if response.Result.Message != kedaMessage || response.Result.Reason != "Forbidden" || len(response.Result.Details.Causes) != 1 {
		t.Fatalf("unexpected response.Result: %+v", response.Result)
	}
	if cause := response.Result.Details.Causes[0]; cause.Field != "metadata.annotations[serving.kserve.io/autoscalerClass]" || cause.Message != kedaMessage {
		t.Errorf("unexpected cause: %+v", cause)
	}
}

// The settings of the namespace of the runtime apply. For a ClusterServingRuntime, which has no namespace, those of the cluster apply.
func TestUsesSettingsOfNamespace(t *testing.T) {
	var namespaces []string
	v := &validator{func(_ context.Context, namespace string) []string {
		namespaces = append(namespaces, namespace)
		return nil
	}}
	request := newRequest(validRuntime, "")
	v.Handle(t.Context(), request)
	request.Namespace = ""
	v.Handle(t.Context(), request)
	if !slices.Equal(namespaces, []string{"team", ""}) {
		t.Errorf("read the settings of namespaces %q, want %q", namespaces, []string{"team", ""})
	}
}

func TestOtherOperationsAreAllowed(t *testing.T) {
	for _, operation := range []admissionv1.Operation{admissionv1.Delete, admissionv1.Connect} {
		request := admission.Request{}
		request.Operation = operation
		if response := (&validator{adapters}).Handle(t.Context(), request); !response.Allowed {
			t.Errorf("%s: unexpected response: %+v", operation, response)
		}
	}
}

func TestDisabledHandlerAllowsWithWarning(t *testing.T) {
	response := disabledHandler.Handle(t.Context(), newRequest(kedaRuntime, ""))
	if !response.Allowed || !slices.Equal(response.Warnings, []string{string(disabledHandler)}) {
		t.Errorf("unexpected response: %+v", response)
	}
}
