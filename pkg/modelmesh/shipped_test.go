package modelmesh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
)

// The built-in runtimes are valid without warnings and have the listed labels and adapters.
func TestBuiltInRuntimes(t *testing.T) {
	types := []string{"mlserver", "ovms", "torchserve", "triton"}
	runtimes := map[string]struct {
		labels, server string
		port           int64
		data           string
	}{
		"mlserver-1.x":   {"mt:lightgbm,mt:lightgbm:3,mt:sklearn,mt:sklearn:0,mt:xgboost,mt:xgboost:1,pv:grpc-v2,rt:mlserver-1.x", "mlserver", 8001, "port:8001"},
		"ovms-1.x":       {"mt:openvino_ir,mt:openvino_ir:opset1,pv:grpc-v1,rt:ovms-1.x", "ovms", 8888, "port:8001"},
		"torchserve-0.x": {"mt:pytorch-mar,mt:pytorch-mar:0,rt:torchserve-0.x", "torchserve", 7071, "port:7070"},
		"triton-2.x": {"mt:keras,mt:keras:2,mt:onnx,mt:onnx:1,mt:pytorch,mt:pytorch:1,mt:tensorflow,mt:tensorflow:1,mt:tensorflow:2,mt:tensorrt,mt:tensorrt:7," +
			"pv:grpc-v2,rt:triton-2.x", "triton", 8001, "port:8001"},
	}
	files, err := filepath.Glob("../../config/runtimes/*.yaml")
	if err != nil || len(files) != len(runtimes)+1 {
		t.Errorf("got files %q and error %v, want kustomization.yaml and the runtimes of this test", files, err)
	}
	for name, want := range runtimes {
		text, err := os.ReadFile("../../config/runtimes/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		r := &v1alpha1.ClusterServingRuntime{}
		if err := yaml.Unmarshal(text, r); err != nil || r.Malformed != "" {
			t.Fatalf("%s: unexpected error %v or malformed fields %s", name, err, r.Malformed)
		}
		if r.Name != name || r.Labels["name"] != "modelmesh-serving-"+name+"-SR" || !IsEnabled(&r.Spec) {
			t.Errorf("%s: unexpected ObjectMeta %+v, or not enabled", name, r.ObjectMeta)
		}
		if got := strings.Join(Labels(r.Name, &r.Spec, false), ","); got != want.labels {
			t.Errorf("%s has the labels\n%s, want\n%s", name, got, want.labels)
		}
		if warnings := Warnings(&r.Spec, types); len(warnings) > 0 {
			t.Errorf("%s: unexpected warnings: %q", name, warnings)
		}
		adapter, c := r.Spec.BuiltInAdapter, r.Spec.Containers[0]
		if adapter.ServerType != want.server || c.Name != want.server || adapter.RuntimeManagementPort != want.port || *r.Spec.GRPCDataEndpoint != want.data ||
			*r.Spec.GRPCEndpoint != "port:8085" || adapter.MemBufferBytes != 128<<20 || adapter.ModelLoadingTimeoutMillis != 90000 {
			t.Errorf("%s: unexpected adapter %+v or endpoints %s and %s", name, adapter, *r.Spec.GRPCEndpoint, *r.Spec.GRPCDataEndpoint)
		}
		requests, limits := c.Resources.Requests, c.Resources.Limits
		if requests.Cpu().String() != "500m" || requests.Memory().String() != "1Gi" || limits.Cpu().String() != "5" || limits.Memory().String() != "1Gi" {
			t.Errorf("%s: unexpected Resources: %v", name, c.Resources)
		}
		if got := r.Annotations["maxLoadingConcurrency"]; (got == "2") != (name == "triton-2.x") {
			t.Errorf("%s: unexpected maxLoadingConcurrency %q", name, got)
		}
	}
}
