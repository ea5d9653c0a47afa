package resources

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// builtInRuntimes returns the built-in runtimes of ModelMesh with the images that kustomize sets.
func builtInRuntimes(t *testing.T) []RuntimeInputs {
	t.Helper()
	files, err := filepath.Glob("../../../config/runtimes/*-*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("built-in runtimes %q, error %v, want 4 files", files, err)
	}
	images := map[string]string{
		"mlserver": "seldonio/mlserver:1.3.2", "ovms": "openvino/model_server:2022.2", "torchserve": "pytorch/torchserve:0.7.1-cpu",
		"triton": "nvcr.io/nvidia/tritonserver:23.04-py3",
	}
	var runtimes []RuntimeInputs
	for _, file := range files {
		objects, err := framework.ReadObjects(file)
		if err != nil || len(objects) != 1 {
			t.Fatalf("%s: %d objects, error %v", file, len(objects), err)
		}
		r := decode[v1alpha1.ClusterServingRuntime](t, objects[0])
		r.Spec.Containers[0].Image = images[r.Spec.BuiltInAdapter.ServerType]
		if err := modelmesh.Validate(&r.Spec, inputs(&r.Spec).Settings.BuiltInServerTypes); err != nil {
			t.Errorf("%s: unexpected error: %v", file, err)
		}
		in := inputs(&r.Spec, withoutRESTAndMetrics)
		in.Name, in.Annotations = r.Name, r.Annotations
		runtimes = append(runtimes, in)
	}
	return runtimes
}

// [modelmesh-31] The Deployments of the built-in runtimes match the golden files.
func TestGoldenBuiltInRuntimes(t *testing.T) {
	for _, in := range builtInRuntimes(t) {
		framework.Golden(t, filepath.Join("testdata", "golden", in.Name+".yaml"), []*unstructured.Unstructured{buildDeploymentFor(t, in)})
	}
}

// The objects of a runtime with sockets in a restricted namespace, and of one with an adapter on OpenShift, match the golden files.
func TestGoldenSidecarAndAutoscaler(t *testing.T) {
	openShift := capability.NewSet(capability.OpenShiftIngress, capability.Route, capability.UserGroup)
	for name, c := range map[string]struct {
		spec   *v1alpha1.ServingRuntimeSpec
		served capability.Set
		change []func(*RuntimeInputs)
	}{
		"sockets-restricted": {runtimeSpec(withSockets, withVolume("own"), withMount("own", "/own")), capability.Set{}, []func(*RuntimeInputs){withTLS, restricted, withClaims("shelf", "with.dots")}},
		"adapter-openshift":  {runtimeSpec(withAdapter), openShift, []func(*RuntimeInputs){onOpenShift}},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(c.spec, c.change...)
			in.Settings.AuthProxy.Mode = meshsettings.AuthProxyAlways
			in.Proxy = authproxy.Decide(in.Settings, in.Namespace, c.served)
			in.Settings.ServiceAccountName = authproxy.ServiceAccountName(in.Settings, c.served)
			in.Annotations = map[string]string{modelmesh.AnnotationAutoscalerClass: "hpa"}
			scale, _ := modelmesh.ParseAutoscaling(in.Annotations)
			namespaceInputs := NamespaceInputs{Namespace: in.Namespace, Settings: in.Settings, Proxy: in.Proxy, TLS: in.TLS}
			namespace := &corev1.Namespace{}
			namespace.Name, namespace.UID = in.Namespace, "1"
			framework.Golden(t, filepath.Join("testdata", "golden", name+".yaml"), []*unstructured.Unstructured{
				buildDeploymentFor(t, in),
				renderObject(t, servingRuntime(in), apply.Object{Config: BuildAutoscaler(in, nil, scale)}),
				renderObject(t, namespace, apply.Object{Config: BuildService(namespaceInputs)}),
				renderObject(t, namespace, apply.Object{Config: BuildServiceMonitor(namespaceInputs)}),
			})
		})
	}
}

// The labels of the built-in runtimes do not change: running pods and loaded models use them. [modelmesh-31]
func TestLabelsOfBuiltInRuntimes(t *testing.T) {
	want := map[string]string{
		"mlserver-1.x":   "mt:lightgbm,mt:lightgbm:3,mt:sklearn,mt:sklearn:0,mt:xgboost,mt:xgboost:1,pv:grpc-v2,rt:mlserver-1.x",
		"ovms-1.x":       "mt:openvino_ir,mt:openvino_ir:opset1,pv:grpc-v1,rt:ovms-1.x",
		"torchserve-0.x": "mt:pytorch-mar,mt:pytorch-mar:0,rt:torchserve-0.x",
		"triton-2.x": "mt:keras,mt:keras:2,mt:onnx,mt:onnx:1,mt:pytorch,mt:pytorch:1,mt:tensorflow,mt:tensorflow:1,mt:tensorflow:2," +
			"mt:tensorrt,mt:tensorrt:7,pv:grpc-v2,rt:triton-2.x",
	}
	for _, in := range builtInRuntimes(t) {
		if got := strings.Join(modelmesh.Labels(in.Name, in.Spec, false), ","); got != want[in.Name] {
			t.Errorf("%s: labels %s, want %s", in.Name, got, want[in.Name])
		}
	}
}

// Each sample runtime is built without a notice.
func TestSampleRuntimesHaveNoNotices(t *testing.T) {
	files, err := filepath.Glob("../../../config/samples/modelmesh_runtime_*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("samples %q, error %v", files, err)
	}
	for _, file := range files {
		objects, err := framework.ReadObjects(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			r := decode[v1alpha1.ServingRuntime](t, object)
			in := inputs(&r.Spec)
			in.Name, in.Annotations = r.Name, r.Annotations
			if warnings := modelmesh.Warnings(&r.Spec, in.Settings.BuiltInServerTypes); len(warnings) > 0 {
				t.Errorf("%s: warnings %q, want none", file, warnings)
			}
			d, err := BuildDeployment(in)
			if err != nil || len(d.Notices) > 0 {
				t.Errorf("%s: notices %q, error %v, want none", file, d.Notices, err)
			}
		}
	}
}
