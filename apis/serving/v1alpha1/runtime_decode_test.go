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

// [M6] Numbers that the schema of KServe lets pass, and that would make a typed list of all runtimes unreadable.
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
	type row struct {
		Name, Malformed string
		Multi, Disabled bool
		Replicas        int64
		Containers      int
	}
	want := []row{
		{Name: "many", Multi: true, Replicas: 70000},
		{Name: "less", Multi: true, Replicas: -1},
		{Name: "huge", Multi: true, Containers: 1, Malformed: "spec.replicas cannot be read"},
		{Name: "port", Multi: true, Malformed: "spec.containers cannot be read"},
		{Name: "quantity", Multi: true, Disabled: true, Malformed: "spec.containers cannot be read"},
		{Name: "text", Malformed: "spec cannot be read"},
		{Name: "null"},
		{Name: "good", Multi: true, Replicas: 3, Containers: 1},
	}
	view := func(name, malformed string, spec ServingRuntimeSpec) row {
		text, _, _ := strings.Cut(malformed, ":")
		out := row{Name: name, Malformed: text, Containers: len(spec.Containers)}
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
		var got []row
		switch l := decoded.(type) {
		case *ServingRuntimeList:
			for _, r := range l.Items {
				got = append(got, view(r.Name, r.Malformed, r.Spec))
			}
		case *ClusterServingRuntimeList:
			for _, r := range l.Items {
				got = append(got, view(r.Name, r.Malformed, r.Spec))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

func TestMetadataOfARuntimeMustBeReadable(t *testing.T) {
	data := []byte(`{"metadata":{"name":7},"spec":{}}`)
	for _, into := range []any{&ServingRuntime{}, &ClusterServingRuntime{}} {
		if err := json.Unmarshal(data, into); err == nil || !strings.HasPrefix(err.Error(), "decoding a runtime: ") {
			t.Errorf("%T: error %v", into, err)
		}
	}
}

// A decoder may be given an object that held something else before.
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

// [UP-F6] Fields that KServe adds are not lost without a word.
func TestIgnoredFields(t *testing.T) {
	r := &ServingRuntime{}
	text := `{"spec":{"multiModel":true,"schedulerName":"gpu","resourceClaims":[{"name":"gpu","resourceClaimName":"one"}],
		"workerSpec":{"size":2},"supportedModelFormats":[{"name":"onnx","priority":1}],"containers":[{"name":"x","resources":{"claims":[{"name":"gpu"}]}}]}}`
	if err := json.Unmarshal([]byte(text), r); err != nil {
		t.Fatal(err)
	}
	if want := []string{"supportedModelFormats[0].priority", "workerSpec"}; !cmp.Equal(sorted(r.Spec.Ignored), want) || r.Malformed != "" {
		t.Errorf("%q ignored and %q malformed, want %q", r.Spec.Ignored, r.Malformed, want)
	}
	if r.Spec.SchedulerName != "gpu" || len(r.Spec.ResourceClaims) != 1 || r.Spec.Containers[0].Resources.Claims[0].Name != "gpu" {
		t.Errorf("unexpected Spec: %+v", r.Spec)
	}
	many := `{"spec":{"containers":[],`
	for i := range 30 {
		many += fmt.Sprintf(`"unknown%d":1,`, i)
	}
	if err := json.Unmarshal([]byte(strings.TrimSuffix(many, ",")+"}}"), r); err != nil || len(r.Spec.Ignored) != maxIgnored {
		t.Errorf("%d ignored, %v", len(r.Spec.Ignored), err)
	}
}

func sorted(values []string) []string {
	slices.Sort(values)
	return values
}
