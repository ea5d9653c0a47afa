package kinds_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// env returns a platform with all components enabled.
func env(t *testing.T, platform string, args ...string) render.Env {
	t.Helper()
	program := config.Program{MLflowVersion: "3.14.0", Components: kinds.Names()}
	args = append([]string{"--components=" + strings.Join(program.Components, ",")}, args...)
	environment := map[string]string{"MLFLOW_IMAGE": "quay.io/example/mlflow:test", "POD_NAMESPACE": "opendatahub"}
	cfg, err := config.Load(program, args, func(name string) (string, bool) { v, ok := environment[name]; return v, ok }, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	served, err := render.Platform(platform)
	if err != nil {
		t.Fatal(err)
	}
	return render.Env{Config: cfg, Capabilities: served, Version: "v1.2.3", Namespace: "team", Domain: "apps.example.com"}
}

// document parses one object.
func document(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := render.Documents(strings.NewReader(text))
	if err != nil || len(objects) != 1 {
		t.Fatalf("got %d objects and error %v, want one object", len(objects), err)
	}
	return objects[0]
}

func sample(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return document(t, string(text))
}

// Each kind is rendered for platform plain, and some kinds also for openshift. The golden files include the notes.
func TestEveryKind(t *testing.T) {
	seen := map[string]bool{}
	for name, tc := range map[string]struct {
		file      string
		platforms []string
	}{
		"raycluster":     {"config/samples/raycluster.yaml", []string{"plain", "openshift"}},
		"servingruntime": {"config/samples/modelmesh_runtime_custom.yaml", []string{"plain", "openshift"}},
		"clusterruntime": {"config/runtimes/ovms-1.x.yaml", []string{"plain"}},
		"predictor":      {"config/samples/modelmesh_predictor.yaml", []string{"plain"}},
		"service":        {"config/samples/modelmesh_inferenceservice.yaml", []string{"plain"}},
		"aihub":          {"config/samples/platform_aihub.yaml", []string{"plain"}},
		"mlflowoperator": {"config/samples/platform_mlflowoperator.yaml", []string{"plain"}},
		"catalog":        {"config/samples/aihub_catalog.yaml", []string{"plain", "openshift"}},
		"appwrapper":     {"config/samples/appwrapper_pytorch_job.yaml", []string{"plain"}},
		"mlflowconfig":   {"config/samples/mlflowconfig.yaml", []string{"plain"}},
		"mlflow":         {"config/samples/mlflow.yaml", []string{"plain"}},
		"modelregistry":  {"config/samples/modelregistry_generated.yaml", []string{"plain"}},
	} {
		obj := sample(t, tc.file)
		seen[obj.GroupVersionKind().GroupVersion().String()+"/"+obj.GetKind()] = true
		for _, platform := range tc.platforms {
			t.Run(name+"/"+platform, func(t *testing.T) {
				before := obj.DeepCopy()
				result, err := kinds.Table().Render(obj, env(t, platform))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, obj); diff != "" {
					t.Errorf("the object was changed (-before +after):\n%s", diff)
				}
				framework.Golden(t, filepath.Join("testdata", name+"-"+platform+".yaml"), withNotes(result))
			})
		}
	}
	for _, kind := range kinds.Table().Names() {
		if !seen[kind] {
			t.Errorf("%s is rendered and has no golden file", kind)
		}
	}
}

func text(t *testing.T, o *unstructured.Unstructured) []byte {
	t.Helper()
	raw, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// withNotes adds the notes as an object for golden files.
func withNotes(r render.Result) []*unstructured.Unstructured {
	notes := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Notes"}}
	notes.SetName("notes")
	list := make([]any, len(r.Notes))
	for i, n := range r.Notes {
		list[i] = n
	}
	notes.Object["notes"] = list
	return append(slices.Clone(r.Objects), notes)
}

// Settings in ConfigMaps of the cluster are applied.
func TestSettingsOfACluster(t *testing.T) {
	e := env(t, "plain")
	stored := map[string]string{
		"opendatahub/codeflare-operator-config":     "kuberay: {mTLSEnabled: false, rayDashboardOAuthEnabled: false, ingressDomain: rays.example.com}",
		"opendatahub/appwrapper-operator-config":    "appwrapper: {schedulerName: packed}",
		"opendatahub/model-serving-config":          "podsPerRuntime: 5",
		"models/model-serving-config":               "podsPerRuntime: 4",
		"opendatahub/model-serving-config-defaults": "inferenceServiceName: front",
	}
	keys := map[string]string{"model-serving-config-defaults": "config-defaults.yaml"}
	e.ConfigMaps = func(namespace, name string) *corev1.ConfigMap {
		content, ok := stored[namespace+"/"+name]
		if !ok {
			return nil
		}
		key := "config.yaml"
		if k, ok := keys[name]; ok {
			key = k
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: content}}
	}
	rendered := func(file, namespace string) string {
		obj := sample(t, file)
		if namespace != "" {
			obj.SetNamespace(namespace)
		}
		result, err := kinds.Table().Render(obj, e)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := result.Write(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := rendered("config/samples/raycluster.yaml", ""); strings.Contains(got, "kube-rbac-proxy") || strings.Contains(got, "-tls") || !strings.Contains(got, "rays.example.com") {
		t.Errorf("want the settings in the ConfigMap of the CodeFlare operator applied:\n%s", got)
	}
	if got := rendered("config/samples/appwrapper_job.yaml", ""); !strings.Contains(got, "schedulerName: packed") {
		t.Errorf("want schedulerName: packed from the ConfigMap of the AppWrapper operator:\n%s", got)
	}
	inTeam, inModels := rendered("config/samples/modelmesh_runtime_custom.yaml", "team"), rendered("config/samples/modelmesh_runtime_custom.yaml", "models")
	if !strings.Contains(inTeam, "name: front\n") || !strings.Contains(inTeam, "replicas: 5") || strings.Contains(inTeam, "prometheus") {
		t.Errorf("want the defaults document as a whole, overridden by the document of the administrators:\n%s", inTeam)
	}
	if !strings.Contains(inModels, "replicas: 4") {
		t.Errorf("want the document of the namespace applied:\n%s", inModels)
	}
}

func TestRenderNotes(t *testing.T) {
	for name, tc := range map[string]struct{ object, want string }{
		"RayCluster of MultiKueue": {`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a}, spec: {managedBy: kueue.x-k8s.io/multikueue, headGroupSpec: {template: {spec: {containers: [{name: h, image: i}]}}}}}`,
			"no objects are created for RayCluster a: spec.managedBy gives it to kueue.x-k8s.io/multikueue"},
		"single-model runtime":                     {`{apiVersion: serving.kserve.io/v1alpha1, kind: ServingRuntime, metadata: {name: a}, spec: {containers: [{name: c}]}}`, "spec.multiModel is not true"},
		"model of KServe":                          {`{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: a}, spec: {predictor: {}}}`, "KServe serves it: annotation serving.kserve.io/deploymentMode is not ModelMesh"},
		"AIHub removed by annotation":              {`{apiVersion: components.platform.opendatahub.io/v1alpha1, kind: AIHub, metadata: {name: default-aihub, annotations: {component.opendatahub.io/management-state: Removed}}, spec: {instancesNamespace: a, applicationNamespace: b}}`, "component.opendatahub.io/management-state is Removed"},
		"AIHub in a reserved namespace, removed":   {`{apiVersion: components.platform.opendatahub.io/v1alpha1, kind: AIHub, metadata: {name: default-aihub, annotations: {component.opendatahub.io/management-state: Removed}}, spec: {instancesNamespace: default, applicationNamespace: b}}`, "component.opendatahub.io/management-state is Removed"},
		"AIHub in a reserved namespace, unmanaged": {`{apiVersion: components.platform.opendatahub.io/v1alpha1, kind: AIHub, metadata: {name: default-aihub, annotations: {component.opendatahub.io/management-state: Unmanaged}}, spec: {instancesNamespace: default, applicationNamespace: b}}`, "component.opendatahub.io/management-state is Unmanaged"},
		"AppWrapper of another controller":         {`{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: a}, spec: {managedBy: other, components: []}}`, "spec.managedBy names another controller"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := kinds.Table().Render(document(t, tc.object), env(t, "plain"))
			if err != nil {
				t.Fatal(err)
			}
			if message := strings.Join(result.Notes, "\n"); !strings.Contains(message, tc.want) {
				t.Errorf("notes %q do not contain %q", message, tc.want)
			}
		})
	}
}

func TestRenderRejectsInvalidObjects(t *testing.T) {
	for name, tc := range map[string]struct{ object, want string }{
		"unknown kind":          {`{apiVersion: v1, kind: Pod}`, "v1/Pod cannot be rendered; known kinds: "},
		"unknown field":         {`{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: a}, spec: {component: []}}`, "component"},
		"invalid head":          {`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a}, spec: {headGroupSpec: {template: 1}}}`, "admission of RayCluster a: spec.headGroupSpec.template"},
		"kind in another group": {`{apiVersion: modelregistry.opendatahub.io/v1alpha1, kind: Catalog, metadata: {name: a}}`, "cannot be rendered"},
		"no framework":          {`{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: a, annotations: {serving.kserve.io/deploymentMode: ModelMesh}}, spec: {predictor: {}}}`, "has neither a model nor a framework"},
		"invalid runtime":       {`{apiVersion: serving.kserve.io/v1alpha1, kind: ServingRuntime, metadata: {name: a}, spec: {multiModel: true, containers: [{name: mm}]}}`, "Invalid runtime Spec"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kinds.Table().Render(document(t, tc.object), env(t, "plain"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := render.Platform("mars"); err == nil || !strings.Contains(err.Error(), `"mars"; known platforms: bare, plain, openshift`) {
		t.Errorf("got error %v for an unknown platform, want one that lists the platforms", err)
	}
}

// All components have settings, and components with StartsWithAnyKind have several kinds.
func TestComponents(t *testing.T) {
	for _, c := range kinds.Components() {
		if c.StartsWithAnyKind && len(c.Kinds) < 2 {
			t.Errorf("%s requires any of %d kinds", c.Name, len(c.Kinds))
		}
	}
	if env(t, "plain").Config.Enabled("nothing") {
		t.Error("an unknown component is enabled")
	}
	for _, name := range kinds.Names() {
		if !env(t, "plain").Config.Enabled(name) {
			t.Errorf("component %s is not in the settings", name)
		}
	}
}

// A component requires the first of its kinds, or any of them if StartsWithAnyKind is set.
func TestMissingKinds(t *testing.T) {
	only := func(served ...string) func(schema.GroupVersionKind) bool {
		return func(kind schema.GroupVersionKind) bool { return slices.Contains(served, kind.Kind) }
	}
	for component, c := range map[string]struct{ missing, sufficient string }{
		"platform": {"MLflowOperator.components.platform.opendatahub.io/v1alpha1 AIHub.components.platform.opendatahub.io/v1alpha1", "AIHub"},
		"mlflow":   {"MLflow.mlflow.opendatahub.io/v1", "MLflow"}, "modelmesh": {"Predictor.serving.kserve.io/v1alpha1", "Predictor"},
		"raycluster": {"RayCluster.ray.io/v1", "RayCluster"},
	} {
		i := slices.IndexFunc(kinds.Components(), func(c kinds.Component) bool { return c.Name == component })
		if got := strings.Join(kinds.Components()[i].MissingKinds(only("MLflowConfig", "ServingRuntime")), " "); got != c.missing {
			t.Errorf("%s with only MLflowConfig and ServingRuntime: got missing kinds %q, want %q", component, got, c.missing)
		}
		if got := kinds.Components()[i].MissingKinds(only(c.sufficient)); len(got) > 0 {
			t.Errorf("%s with %s: got missing kinds %q, want none", component, c.sufficient, got)
		}
	}
}

func TestComponentOf(t *testing.T) {
	if kinds.ComponentOf(schema.GroupKind{Kind: "Pod"}) != "" || kinds.ComponentOf(schema.GroupKind{Group: "ray.io", Kind: "RayCluster"}) != "raycluster" {
		t.Error("want no component for Pod and raycluster for RayCluster")
	}
}

// Selects distinguishes objects of ModelMesh from those of KServe.
func TestSelectsDistinguishesModelMesh(t *testing.T) {
	filters := map[string]func(*unstructured.Unstructured) bool{}
	for _, c := range kinds.Components() {
		for _, k := range c.Kinds {
			filters[k.Kind] = k.Selects
		}
	}
	for name, c := range map[string]struct {
		kind string
		spec map[string]any
		mode string
		want bool
	}{
		"multi-model runtime":           {"ServingRuntime", map[string]any{"multiModel": true}, "", true},
		"single-model runtime":          {"ServingRuntime", map[string]any{"multiModel": false}, "", false},
		"runtime without multiModel":    {"ClusterServingRuntime", map[string]any{}, "", false},
		"multiModel with a wrong type":  {"ClusterServingRuntime", map[string]any{"multiModel": "true"}, "", false},
		"model in ModelMesh mode":       {"InferenceService", nil, "ModelMesh", true},
		"model in RawDeployment mode":   {"InferenceService", nil, "RawDeployment", false},
		"model without deployment mode": {"InferenceService", nil, "", false},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": c.kind, "spec": c.spec}}
		if c.mode != "" {
			u.SetAnnotations(map[string]string{"serving.kserve.io/deploymentMode": c.mode})
		}
		if got := filters[c.kind](u); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
	if filters["Predictor"] != nil || filters["MLflow"] != nil {
		t.Error("kinds that only this operator reconciles have a filter, want none")
	}
}

// Each server and proxy with options for TLS gets the TLS profile of the settings.
func TestTLSProfileOfServers(t *testing.T) {
	for file, want := range map[string]string{
		"config/samples/mlflow.yaml":              "PSK-AES256-GCM-SHA384",
		"config/samples/modelregistry_proxy.yaml": "--tls-min-version=VersionTLS13",
		"config/samples/aihub_catalog.yaml":       "--tls-min-version=VersionTLS13",
		"config/samples/raycluster.yaml":          "--tls-min-version=VersionTLS13",
	} {
		obj := sample(t, file)
		for _, args := range [][]string{nil, {"--tls-min-version=VersionTLS13"}} {
			result, err := kinds.Table().Render(obj.DeepCopy(), env(t, "plain", args...))
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, o := range result.Objects {
				all.Write(text(t, o))
			}
			if strings.Contains(all.String(), want) != (args != nil) {
				t.Errorf("%s with %v: want %s only with a TLS profile", file, args, want)
			}
		}
	}
}
