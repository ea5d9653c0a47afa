package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// [M6] The schema of KServe accepts numbers that a typed client cannot decode. A runtime with such a number must not make
// the decoding of the whole list fail.
func TestInvalidNumbersDoNotHideOtherRuntimes(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	list := `{"apiVersion":"serving.kserve.io/v1alpha1","kind":"%sList","metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"many"},"spec":{"multiModel":true,"replicas":70000,"containers":[]}},
		{"metadata":{"name":"less"},"spec":{"multiModel":true,"replicas":-1,"containers":[]}},
		{"metadata":{"name":"huge"},"spec":{"multiModel":true,"replicas":1e30,"containers":[{"name":"x"}],"grpcEndpoint":"port:1"}},
		{"metadata":{"name":"port"},"spec":{"multiModel":true,"containers":[{"name":"x","ports":[{"containerPort":5000000000}]}]}},
		{"metadata":{"name":"quantity"},"spec":{"containers":[{"name":"x","resources":{"limits":{"cpu":"no"}}}],"multiModel":true,"disabled":true}},
		{"metadata":{"name":"text"},"spec":"no"},
		{"metadata":{"name":"null"},"spec":null},
		{"metadata":{"name":"good"},"spec":{"multiModel":true,"replicas":3,"containers":[{"name":"x"}]}}]}`
	type summary struct {
		Name, Malformed string
		Multi, Disabled bool
		Replicas        int64
		Containers      int
	}
	want := []summary{
		{Name: "many", Multi: true, Replicas: 70000},
		{Name: "less", Multi: true, Replicas: -1},
		{Name: "huge", Multi: true, Containers: 1, Malformed: "spec.replicas cannot be read"},
		{Name: "port", Multi: true, Malformed: "spec.containers cannot be read"},
		{Name: "quantity", Multi: true, Disabled: true, Malformed: "spec.containers cannot be read"},
		{Name: "text", Malformed: "spec cannot be read"},
		{Name: "null"},
		{Name: "good", Multi: true, Replicas: 3, Containers: 1},
	}
	summarize := func(name, malformed string, spec ServingRuntimeSpec) summary {
		text, _, _ := strings.Cut(malformed, ":")
		out := summary{Name: name, Malformed: text, Containers: len(spec.Containers)}
		if spec.MultiModel != nil {
			out.Multi = *spec.MultiModel
		}
		if spec.Disabled != nil {
			out.Disabled = *spec.Disabled
		}
		if spec.Replicas != nil {
			out.Replicas = *spec.Replicas
		}
		return out
	}
	decoder := serializer.NewCodecFactory(s).UniversalDeserializer()
	for _, kind := range []string{KindServingRuntime, KindClusterServingRuntime} {
		decoded, _, err := decoder.Decode([]byte(strings.Replace(list, "%s", kind, 1)), nil, nil)
		if err != nil {
			t.Fatalf("%s: unexpected error: %v", kind, err)
		}
		var got []summary
		switch l := decoded.(type) {
		case *ServingRuntimeList:
			for _, r := range l.Items {
				got = append(got, summarize(r.Name, r.Malformed, r.Spec))
			}
		case *ClusterServingRuntimeList:
			for _, r := range l.Items {
				got = append(got, summarize(r.Name, r.Malformed, r.Spec))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

func TestInvalidMetadataIsAnError(t *testing.T) {
	data := []byte(`{"metadata":{"name":7},"spec":{}}`)
	for _, into := range []any{&ServingRuntime{}, &ClusterServingRuntime{}} {
		if err := json.Unmarshal(data, into); err == nil || !strings.HasPrefix(err.Error(), "decoding a runtime: ") {
			t.Errorf("%T: got error %v, want prefix %q", into, err, "decoding a runtime: ")
		}
	}
}

// The target of UnmarshalJSON may contain fields of another object.
func TestDecodingReplacesPreviousContent(t *testing.T) {
	r := &ServingRuntime{Malformed: "before", Spec: ServingRuntimeSpec{Replicas: new(int64(1))}}
	r.Labels = map[string]string{"old": "x"}
	if err := json.Unmarshal([]byte(`{"metadata":{"name":"r","uid":"u"},"spec":{"multiModel":false}}`), r); err != nil {
		t.Fatal(err)
	}
	want := &ServingRuntime{Spec: ServingRuntimeSpec{MultiModel: new(false)}}
	want.Name, want.UID = "r", "u"
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

// [UP-F6] Fields that the Go type does not have are listed in Ignored.
func TestIgnoredFields(t *testing.T) {
	r := &ServingRuntime{}
	text := `{"spec":{"multiModel":true,"schedulerName":"gpu","resourceClaims":[{"name":"gpu","resourceClaimName":"one"}],
		"workerSpec":{"size":2},"supportedModelFormats":[{"name":"onnx","priority":1}],"containers":[{"name":"x","resources":{"claims":[{"name":"gpu"}]}}]}}`
	if err := json.Unmarshal([]byte(text), r); err != nil {
		t.Fatal(err)
	}
	if want := []string{"supportedModelFormats[0].priority", "workerSpec"}; !cmp.Equal(slices.Sorted(slices.Values(r.Spec.Ignored)), want) || r.Malformed != "" {
		t.Errorf("ignored fields %q and malformed field %q, want ignored %q", r.Spec.Ignored, r.Malformed, want)
	}
	if r.Spec.SchedulerName != "gpu" || len(r.Spec.ResourceClaims) != 1 || r.Spec.Containers[0].Resources.Claims[0].Name != "gpu" {
		t.Errorf("unexpected Spec: %+v", r.Spec)
	}
	many := `{"spec":{"containers":[],`
	for i := range 30 {
		many += fmt.Sprintf(`"unknown%d":1,`, i)
	}
	if err := json.Unmarshal([]byte(strings.TrimSuffix(many, ",")+"}}"), r); err != nil || len(r.Spec.Ignored) != maxIgnored {
		t.Errorf("%d ignored fields, want %d; error %v", len(r.Spec.Ignored), maxIgnored, err)
	}
}
