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
	good     = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"grpcEndpoint":"port:9000","containers":[{"name":"c","image":"i"}]}}`
	single   = `{"metadata":{"name":"r","annotations":{"serving.kserve.io/autoscalerClass":"keda"}},"spec":{"multiModel":false,"containers":[{"name":"mm"}]}}`
	unmarked = `{"metadata":{"name":"r","annotations":{"serving.kserve.io/autoscalerClass":"keda"}},"spec":{"containers":[{"name":"mm"}]}}`
	keda     = `{"metadata":{"name":"r","annotations":{"serving.kserve.io/autoscalerClass":"keda"}},"spec":{"multiModel":true,"grpcEndpoint":"port:9000","containers":[{"name":"c"}]}}`
	test     = `{"metadata":{"name":"r","annotations":{"serving.kserve.io/autoscalerClass":"test"}},"spec":{"multiModel":true,"grpcEndpoint":"port:9000","containers":[{"name":"c"}]}}`
	many     = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"replicas":70000,"grpcEndpoint":"port:9000","containers":[{"name":"c"}]}}`
	fewer    = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"replicas":-1,"grpcEndpoint":"port:9000","containers":[{"name":"c"}]}}`
	manyOnce = `{"metadata":{"name":"r"},"spec":{"multiModel":false,"replicas":70000,"containers":[{"name":"c"}]}}`
	reserved = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"grpcEndpoint":"port:9000","containers":[{"name":"mm"}]}}`
	https    = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"grpcEndpoint":"port:9000","containers":[{"name":"mm","ports":[{"name":"https","containerPort":1}]}]}}`
	leaving  = `{"metadata":{"name":"r","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"multiModel":true,"containers":[]}}`
	quantity = `{"metadata":{"name":"r"},"spec":{"multiModel":true,"containers":[{"name":"c","resources":{"limits":{"cpu":"x"}}}]}}`

	kedaText     = "[keda] is not a supported autoscaler class type.\n"
	reservedText = "no pods are created: container spec for mm is invalid: container name mm is reserved for internal use"
	httpsText    = "spec.containers[mm]: ModelMesh has a port named https: choose another name"
)

func ask(object, old string) admission.Request {
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
		"a good one":                                      {object: good},
		"no JSON":                                         {object: `{`, code: http.StatusBadRequest, message: "reading the object of the request: "},
		"no object":                                       {object: `7`, code: http.StatusBadRequest, message: "reading the object of the request: "},
		"an old one that is no JSON":                      {object: good, old: `[`, code: http.StatusBadRequest, message: "reading the object of the request: "},
		"of KServe itself":                                {object: single},
		"KServe runtime without multiModel":               {object: unmarked},
		"a rule broken":                                   {object: keda, code: http.StatusForbidden, message: kedaText},
		"a rule broken by a change":                       {object: keda, old: good, code: http.StatusForbidden, message: kedaText},
		"a rule broken in another way":                    {object: keda, old: test, code: http.StatusForbidden, message: kedaText},
		"a rule that was broken before":                   {object: keda, old: keda, warnings: []string{"metadata.annotations[serving.kserve.io/autoscalerClass]: " + strings.TrimSpace(kedaText)}},
		"broken while it was of KServe":                   {object: keda, old: single, code: http.StatusForbidden, message: kedaText},
		"mended":                                          {object: good, old: keda},
		"leaving":                                         {object: keda, old: leaving},
		"create with a deletion timestamp":                {object: strings.Replace(keda, `"name":"r",`, `"name":"r","deletionTimestamp":"2026-01-01T00:00:00Z",`, 1), code: http.StatusForbidden, message: kedaText},
		"[M6] more than KServe can read":                  {object: many, code: http.StatusBadRequest, message: "spec.replicas: Invalid value: 70000: must be a number from 0 to 65535"},
		"[M6] less than KServe can read":                  {object: fewer, code: http.StatusBadRequest, message: "spec.replicas: Invalid value: -1: must be a number from 0 to 65535"},
		"[M6] invalid encoding, even of a KServe runtime": {object: manyOnce, code: http.StatusBadRequest, message: "spec.replicas: Invalid value: 70000"},
		"[M6] stored before":                              {object: many, old: many, warnings: []string{"spec.replicas: Invalid value: 70000"}},
		"[M6] stored before, of KServe":                   {object: manyOnce, old: manyOnce, warnings: []string{"spec.replicas: Invalid value: 70000"}},
		"[M6] stored with another one before":             {object: fewer, old: many, code: http.StatusBadRequest, message: "spec.replicas: Invalid value: -1"},
		"invalid quantity":                                {object: quantity, code: http.StatusBadRequest, message: "spec.containers cannot be read: "},
		"[M41] a reserved name":                           {object: reserved, warnings: []string{reservedText}},
		"a warning that was not given before":             {object: https, old: reserved, warnings: []string{httpsText}},
		"a warning that the runtime never was given":      {object: reserved, old: strings.Replace(reserved, "true", "false", 1), warnings: []string{reservedText}},
		"all warnings were given before":                  {object: reserved, old: https},
		"several warnings":                                {object: https, warnings: []string{reservedText, httpsText}},
		"[M1] without grpcEndpoint":                       {object: strings.Replace(good, `"grpcEndpoint":"port:9000",`, "", 1), warnings: []string{"no pods are created: "}},
		"[M43] an endpoint that is a number":              {object: strings.Replace(good, "port:9000", "8085", 1), warnings: []string{"no pods are created: "}},
		"an adapter that the settings do not know":        {object: strings.Replace(good, `"multiModel"`, `"builtInAdapter":{"serverType":"c"},"multiModel"`, 1), warnings: []string{"no pods are created: unrecognized built-in runtime server type c"}},
		"an adapter that the settings know":               {object: strings.ReplaceAll(strings.Replace(good, `"multiModel"`, `"builtInAdapter":{"serverType":"c"},"multiModel"`, 1), `"c"`, `"ovms"`)},
		"class none, and a port with a reserved name":     {object: strings.Replace(https, `"name":"r"`, `"annotations":{"serving.kserve.io/autoscalerClass":"none"}`, 1), warnings: []string{reservedText, httpsText}},
	}
	v := &validator{adapters}
	for name, c := range cases {
		response := v.Handle(t.Context(), ask(c.object, c.old))
		if response.Allowed != (c.code == 0) {
			t.Errorf("%s: unexpected response: %+v", name, response)
			continue
		}
		if !response.Allowed && (response.Result.Code != c.code || !strings.HasPrefix(response.Result.Message, c.message)) {
			t.Errorf("%s: %d got %q, want %d %q", name, response.Result.Code, response.Result.Message, c.code, c.message)
		}
		if !slices.EqualFunc(response.Warnings, c.warnings, strings.HasPrefix) {
			t.Errorf("%s: warnings %q, want %q", name, response.Warnings, c.warnings)
		}
	}
}

// A denial names the field in its details. The message contains only the text that clients compare.
func TestDenialNamesField(t *testing.T) {
	response := (&validator{adapters}).Handle(t.Context(), ask(keda, ""))
	if response.Result.Message != kedaText || response.Result.Reason != "Forbidden" || len(response.Result.Details.Causes) != 1 {
		t.Fatalf("unexpected response.Result: %+v", response.Result)
	}
	if cause := response.Result.Details.Causes[0]; cause.Field != "metadata.annotations[serving.kserve.io/autoscalerClass]" || cause.Message != kedaText {
		t.Errorf("unexpected cause: %+v", cause)
	}
}

// The settings of the namespace apply; for a ClusterServingRuntime, those of the cluster.
func TestUsesSettingsOfNamespace(t *testing.T) {
	var requests []string
	v := &validator{func(_ context.Context, namespace string) []string {
		requests = append(requests, namespace)
		return nil
	}}
	request := ask(good, "")
	v.Handle(t.Context(), request)
	request.Namespace = ""
	v.Handle(t.Context(), request)
	if !slices.Equal(requests, []string{"team", ""}) {
		t.Errorf("asked for %q, want %q", requests, []string{"team", ""})
	}
}

func TestOtherOperationsPass(t *testing.T) {
	for _, operation := range []admissionv1.Operation{admissionv1.Delete, admissionv1.Connect} {
		request := admission.Request{}
		request.Operation = operation
		if response := (&validator{adapters}).Handle(t.Context(), request); !response.Allowed {
			t.Errorf("%s: unexpected response: %+v", operation, response)
		}
	}
}

func TestSwitchedOff(t *testing.T) {
	response := disabledHandler.Handle(t.Context(), ask(keda, ""))
	if !response.Allowed || !slices.Equal(response.Warnings, []string{string(disabledHandler)}) {
		t.Errorf("unexpected response: %+v", response)
	}
}
