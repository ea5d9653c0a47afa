package resources

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// runtimeSpec returns the spec of a runtime with a custom server.
func runtimeSpec(change ...func(*v1alpha1.ServingRuntimeSpec)) *v1alpha1.ServingRuntimeSpec {
	spec := &v1alpha1.ServingRuntimeSpec{
		MultiModel: new(true), GRPCEndpoint: new("port:9103"), Containers: []corev1.Container{{Name: "server", Image: "example.com/server:7"}},
		SupportedModelFormats: []v1alpha1.SupportedModelFormat{{Name: "own", AutoSelect: new(true)}},
	}
	for _, f := range change {
		f(spec)
	}
	return spec
}

// withAdapter adds a built-in adapter.
func withAdapter(s *v1alpha1.ServingRuntimeSpec) {
	s.GRPCEndpoint, s.GRPCDataEndpoint = new("port:8085"), new("port:8001")
	s.Containers[0].Name = "triton"
	s.BuiltInAdapter = &v1alpha1.BuiltInAdapter{
		ServerType: "triton", RuntimeManagementPort: 8001, MemBufferBytes: 134217728, ModelLoadingTimeoutMillis: 90000,
	}
}

// withSockets sets socket endpoints for management and inference.
func withSockets(s *v1alpha1.ServingRuntimeSpec) {
	s.GRPCEndpoint, s.GRPCDataEndpoint = new("unix:/tmp/own/grpc.sock"), new("unix:///tmp/own/data.sock")
}

func withoutPuller(s *v1alpha1.ServingRuntimeSpec) {
	s.StorageHelper = &v1alpha1.StorageHelper{Disabled: true}
}

// inputs returns the inputs of a runtime with default settings.
func inputs(spec *v1alpha1.ServingRuntimeSpec, change ...func(*RuntimeInputs)) RuntimeInputs {
	in := RuntimeInputs{
		NamespaceInputs: NamespaceInputs{Namespace: "vision", Settings: meshsettings.Default()}, Name: "own", Spec: spec, Replicas: new(int32(2)),
	}
	for _, f := range change {
		f(&in)
	}
	return in
}

func legacyForm(in *RuntimeInputs) { in.Form = Legacy }

// newOAuthProxy returns the OAuth proxy of the namespace.
func newOAuthProxy() *authproxy.Proxy {
	return authproxy.Decide(meshsettings.Default(), "vision", capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup))
}

func withoutRESTAndMetrics(in *RuntimeInputs) {
	in.Settings.RESTProxy.Enabled, in.Settings.Metrics.Enabled = false, false
}

func withTLS(in *RuntimeInputs) {
	in.Settings.TLS = meshsettings.TLS{SecretName: "serving-tls", ClientAuth: " require "}
	in.TLS = &TLSInputs{SecretName: "serving-tls", HasCA: true}
}

func withClaims(claims ...string) func(*RuntimeInputs) {
	return func(in *RuntimeInputs) { in.Claims = claims }
}

// servingRuntime returns the ServingRuntime of the inputs, which owns the objects.
func servingRuntime(in RuntimeInputs) *v1alpha1.ServingRuntime {
	r := &v1alpha1.ServingRuntime{Spec: *in.Spec}
	r.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindServingRuntime))
	r.Namespace, r.Name, r.Annotations = in.Namespace, in.Name, in.Annotations
	r.UID = "7f0c2f5e-0000-4000-8000-000000000001"
	return r
}

// buildDeploymentFor returns the Deployment as it would be applied.
func buildDeploymentFor(t testing.TB, in RuntimeInputs) *unstructured.Unstructured {
	t.Helper()
	d, err := BuildDeployment(in)
	if err != nil {
		t.Fatal(err)
	}
	return renderObject(t, servingRuntime(in), apply.Object{Config: d.Config})
}

func renderObject(t testing.TB, owner client.Object, object apply.Object) *unstructured.Unstructured {
	t.Helper()
	objects, err := apply.Render(apply.Desired{object}, componentName, owner)
	if err != nil {
		t.Fatal(err)
	}
	return objects[0]
}

// buildPod decodes the pod template of a Deployment and rejects unknown fields.
func buildPod(t testing.TB, in RuntimeInputs) corev1.PodSpec {
	t.Helper()
	return decode[appsv1.Deployment](t, buildDeploymentFor(t, in)).Spec.Template.Spec
}

func decode[T any](t testing.TB, u *unstructured.Unstructured) *T {
	t.Helper()
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, into, true); err != nil {
		t.Fatal(err)
	}
	return into
}

func getContainer(t testing.TB, pod corev1.PodSpec, name string) corev1.Container {
	t.Helper()
	for _, c := range pod.Containers {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("the pod has no container %s", name)
	return corev1.Container{}
}

func containerNames(pod corev1.PodSpec) []string {
	var names []string
	for _, c := range pod.Containers {
		names = append(names, c.Name)
	}
	return names
}

// envValue returns the value of a variable of a container, and whether it is set.
func envValue(c corev1.Container, name string) (string, bool) {
	for _, v := range c.Env {
		if v.Name == name {
			return v.Value, true
		}
	}
	return "", false
}

func envNames(c corev1.Container) []string {
	var names []string
	for _, v := range c.Env {
		names = append(names, v.Name)
	}
	return names
}

func volumeNames(pod corev1.PodSpec) []string {
	var names []string
	for _, v := range pod.Volumes {
		names = append(names, v.Name)
	}
	return names
}

// mounts returns the volumes and mount paths of a container.
func mounts(c corev1.Container) []string {
	var mounts []string
	for _, m := range c.VolumeMounts {
		mounts = append(mounts, m.Name+" "+m.MountPath)
	}
	return mounts
}

func memory(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(amount)}
}

const componentName = "modelmesh"
