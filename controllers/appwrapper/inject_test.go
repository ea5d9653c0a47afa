package appwrapper

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// wrapped parses an AppWrapper and sets the pod sets in its status, as the first reconcile does.
func wrapped(t testing.TB, text string) *awv1beta2.AppWrapper {
	t.Helper()
	aw := &awv1beta2.AppWrapper{}
	if err := yaml.UnmarshalStrict([]byte(text), aw); err != nil {
		t.Fatal(err)
	}
	for i := range aw.Spec.Components {
		sets, err := podset.ForComponent(&aw.Spec.Components[i])
		if err != nil {
			t.Fatal(err)
		}
		aw.Status.ComponentStatus = append(aw.Status.ComponentStatus, awv1beta2.AppWrapperComponentStatus{PodSets: sets})
	}
	return aw
}

// wrapTemplate wraps a single object with pod set infos.
func wrapTemplate(infos, template string) string {
	return "{metadata: {name: aw, namespace: ns}, spec: {components: [{" + infos + "template: " + template + "}]}}"
}

func withScheduler() Settings {
	settings := defaultSettings()
	settings.SchedulerName = "bin-packer"
	settings.Autopilot.ResourceTaints["nvidia.com/gpu"] = append(settings.Autopilot.ResourceTaints["nvidia.com/gpu"],
		config.NodeTaint{Key: "extra", Value: "test", Effect: "NoExecute"},
		config.NodeTaint{Key: "extra2", Value: "test2", Effect: "PreferNoSchedule"})
	settings.Autopilot.ResourceTaints["example.com/fpga"] = []config.NodeTaint{
		{Key: "extra", Value: "burnt", Effect: "NoSchedule"},
		{Key: "extra", Value: "test", Effect: "NoSchedule"}}
	return settings
}

// [appwrapper-11] [appwrapper-12] [appwrapper-13] [appwrapper-14] D28 D29: created objects with all additions, for each AppWrapper.
func TestBuildObjectGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/inject/*/appwrapper.yaml")
	if err != nil || len(cases) < 6 {
		t.Fatalf("cases %v: %v", cases, err)
	}
	for _, file := range cases {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			aw := wrapped(t, string(text))
			settings := defaultSettings()
			if strings.Contains(string(text), "extended settings") {
				settings = withScheduler()
			}
			var out []byte
			for i := range aw.Spec.Components {
				u, warnings, err := buildObject(aw, i, settings)
				if err != nil {
					t.Fatal(err)
				}
				if len(warnings) != 0 {
					t.Errorf("warnings %q", warnings)
				}
				object, err := yaml.Marshal(u.Object)
				if err != nil {
					t.Fatal(err)
				}
				out = append(append(out, "---\n"...), object...)
			}
			framework.GoldenText(t, filepath.Join(filepath.Dir(file), "objects.yaml"), string(out))
		})
	}
}

const podTemplate = `{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {l: "1"}, annotations: {a: "1"}}, spec: {nodeSelector: {d: "1"}, containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}`

// Templates from which no object can be built.
func TestBuildObjectRejects(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"another namespace", wrapTemplate("", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: other}}`), `metadata.namespace is "other": leave it out`},
		{"another label on the object [D28]", wrapTemplate("", `{apiVersion: v1, kind: ConfigMap, metadata: {labels: {workload.codeflare.dev/appwrapper: other}}}`),
			"conflict updating labels: conflict for key=workload.codeflare.dev/appwrapper, value1=other, value2=aw: remove the key from the pod template"},
		{"labels that are no map", wrapTemplate("", `{apiVersion: v1, kind: ConfigMap, metadata: {labels: [x]}}`), "labels is [x]: write a map"},
		{"metadata that is not a map", wrapTemplate("", `{apiVersion: v1, kind: ConfigMap, metadata: x}`), "metadata is x: write a map"},
		{"annotation", wrapTemplate("podSetInfos: [{annotations: {a: '2'}}], ", podTemplate), "pod template at template: conflict updating annotations: conflict for key=a, value1=1, value2=2: remove the key from the pod template"},
		{"label", wrapTemplate("podSetInfos: [{labels: {l: '2'}}], ", podTemplate), "pod template at template: conflict updating labels: conflict for key=l, value1=1, value2=2: remove the key from the pod template"},
		{"our label in an info", wrapTemplate("podSetInfos: [{labels: {workload.codeflare.dev/appwrapper: x}}], ", podTemplate), "conflict updating labels: conflict for key=workload.codeflare.dev/appwrapper, value1=aw, value2=x: remove the key from the pod template"},
		{"node selector", wrapTemplate("podSetInfos: [{nodeSelector: {d: '2'}}], ", podTemplate), "pod template at template: conflict updating nodeSelector: conflict for key=d, value1=1, value2=2: remove the key from the pod template"},
		{"a label that is a number", wrapTemplate("podSetInfos: [{labels: {l: '2'}}], ", strings.Replace(podTemplate, `l: "1"`, "l: 2", 1)), "conflict updating labels: conflict for key=l, value1=2, value2=2: remove the key from the pod template"},
		{"tolerations that are no list", wrapTemplate("podSetInfos: [{tolerations: [{key: k}]}], podSets: [{path: template}], ", `{apiVersion: example.com/v1, kind: X, spec: {tolerations: none}}`), "tolerations is none: write a list"},
		{"gates that are no list", wrapTemplate("podSetInfos: [{schedulingGates: [{name: g}]}], podSets: [{path: template}], ", `{apiVersion: example.com/v1, kind: X, spec: {schedulingGates: 5}}`), "schedulingGates is 5: write a list"},
		{"no pod spec", wrapTemplate("podSets: [{path: template}], ", `{apiVersion: example.com/v1, kind: X}`), "spec is <nil>: write a pod spec"},
		{"no path", wrapTemplate("podSets: [{path: template.spec.pods}], ", `{apiVersion: example.com/v1, kind: X, spec: {}}`), "at path position 'template.spec' missing field 'pods'"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u, _, err := buildObject(wrapped(t, test.text), 0, defaultSettings())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v and %v, want an error with %q", u, err, test.want)
			}
		})
	}
	aw := wrapped(t, wrapTemplate("", podTemplate))
	aw.Spec.Components[0].Template.Raw = []byte("{")
	if u, _, err := buildObject(aw, 0, defaultSettings()); err == nil {
		t.Errorf("a broken template gives %v", u)
	}
}

// An invalid affinity of the user is left unchanged, and creation continues.
func TestMalformedAffinity(t *testing.T) {
	for _, affinity := range []string{
		`x`,
		`{nodeAffinity: []}`,
		`{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: 5}}`,
		`{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: x}}}`,
		`{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, x]}}}`,
		`{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: x}]}}}`,
		`{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: x}]}}}`,
		`{nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: x}}`,
		`{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{newer: 1}]}}}`,
	} {
		aw := wrapped(t, wrapTemplate("podSets: [{path: template}], ", `{apiVersion: example.com/v1, kind: X, spec: {affinity: `+affinity+`, containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}`))
		before, err := podset.Decode(&aw.Spec.Components[0])
		if err != nil {
			t.Fatal(err)
		}
		u, warnings, err := buildObject(aw, 0, defaultSettings())
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "pod template at template: the pods are not kept away") {
			t.Errorf("%s: warnings %q, %v", affinity, warnings, err)
			continue
		}
		got, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec")
		want, _, _ := unstructured.NestedFieldNoCopy(before.Object, "spec")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %v", affinity, got)
		}
	}
}

// [appwrapper-12] Containers with and without requests of a resource.
func TestRequests(t *testing.T) {
	for text, want := range map[string]bool{
		`{containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}`:                                true,
		`{containers: [{}, {resources: {requests: {nvidia.com/gpu: "2"}}}]}`:                        true,
		`{initContainers: [{resources: {requests: {nvidia.com/gpu: 1.5}}}]}`:                        true,
		`{containers: [{resources: {limits: {nvidia.com/gpu: 0}, requests: {nvidia.com/gpu: 1}}}]}`: true,
		`{containers: [{resources: {limits: {nvidia.com/gpu: 0}}}]}`:                                false,
		`{containers: [{resources: {limits: {nvidia.com/gpu: "0"}}}]}`:                              false,
		`{containers: [{resources: {limits: {nvidia.com/gpu: 0.0}}}]}`:                              false,
		`{containers: [{resources: {limits: {nvidia.com/gpu: many}}}]}`:                             false,
		`{containers: [{resources: {limits: {nvidia.com/gpu: "1e-2000000000"}}}]}`:                  false,
		`{containers: [{resources: {limits: {nvidia.com/gpu: true}}}]}`:                             false,
		`{containers: [{resources: {limits: {amd.com/gpu: 1}}}]}`:                                   false,
		`{containers: [{resources: x}, x]}`:                                                         false,
		`{containers: {}}`:                                                                          false,
	} {
		spec := map[string]any{}
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &spec); err != nil {
			t.Fatal(err)
		}
		if got := requestsResource(spec, "nvidia.com/gpu"); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
}

// With Autopilot or its injection disabled the template is unchanged.
func TestNoInjection(t *testing.T) {
	off := defaultSettings()
	off.Autopilot.InjectAntiAffinities = false
	none := defaultSettings()
	none.Autopilot = nil
	for name, settings := range map[string]Settings{"disabled": off, "no Autopilot": none} {
		u, warnings, err := buildObject(wrapped(t, wrapTemplate("", podTemplate)), 0, settings)
		if err != nil || len(warnings) != 0 {
			t.Fatalf("%s: unexpected warnings %q, error %v", name, warnings, err)
		}
		if _, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "affinity"); found {
			t.Errorf("%s: an affinity was added", name)
		}
	}
}

// The cached AppWrapper is not modified, and two objects share nothing.
func TestBuildObjectCopiesTemplate(t *testing.T) {
	aw := wrapped(t, wrapTemplate("podSetInfos: [{labels: {q: r}, tolerations: [{key: k}]}], ", podTemplate))
	before := aw.DeepCopy()
	first, _, err := buildObject(aw, 0, defaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	kept := first.DeepCopy()
	second, _, err := buildObject(aw, 0, defaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	second.SetLabels(map[string]string{"other": "x"})
	if !reflect.DeepEqual(aw, before) {
		t.Error("the AppWrapper changed")
	}
	if !reflect.DeepEqual(first, kept) {
		t.Error("building a second object modified the first")
	}
}

// Missing infos equal empty ones.
func TestFewerInfosThanPodSets(t *testing.T) {
	aw := wrapped(t, wrapTemplate("podSetInfos: [{labels: {q: r}}], podSets: [{path: template.a}, {path: template.b}], ", `{apiVersion: example.com/v1, kind: X, a: {spec: {}}, b: {spec: {}}}`))
	u, _, err := buildObject(aw, 0, defaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	a, _, _ := unstructured.NestedStringMap(u.Object, "a", "metadata", "labels")
	b, _, _ := unstructured.NestedStringMap(u.Object, "b", "metadata", "labels")
	if len(a) != 2 || a["q"] != "r" || len(b) != 1 || b[awv1beta2.LabelAppWrapper] != "aw" {
		t.Errorf("labels %v and %v", a, b)
	}
}

// No template causes a panic, and the result is plain JSON [D27] with the label.
func FuzzBuildObject(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":1}}}]}}`), "template", "l", "v", "n")
	f.Add([]byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":null,"spec":{"template":{"metadata":null,"spec":{"tolerations":null,"affinity":{"nodeAffinity":{}}}}}}`), "template.spec.template", "l", "v", "n")
	f.Add([]byte(`{"apiVersion":"v1","kind":"X","metadata":{"labels":{"l":5}},"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{},{"matchFields":[1]}]}},"x":1}}}`), "template", "l", "v", "n")
	f.Fuzz(func(t *testing.T, raw []byte, path, key, value, name string) {
		aw := &awv1beta2.AppWrapper{}
		aw.Name, aw.Namespace = name, "ns"
		aw.Spec.Components = []awv1beta2.AppWrapperComponent{{PodSetInfos: []awv1beta2.AppWrapperPodSetInfo{{
			Labels: map[string]string{key: value}, Annotations: map[string]string{key: value}, NodeSelector: map[string]string{key: value},
			Tolerations:     []corev1.Toleration{{Key: key, Value: value, TolerationSeconds: new(int64(5))}},
			SchedulingGates: []corev1.PodSchedulingGate{{Name: key}, {Name: key}},
		}}}}
		aw.Spec.Components[0].Template.Raw = raw
		aw.Status.ComponentStatus = []awv1beta2.AppWrapperComponentStatus{{PodSets: []awv1beta2.AppWrapperPodSet{{Path: path}}}}
		u, _, err := buildObject(aw, 0, withScheduler())
		if err != nil {
			return
		}
		text, err := json.Marshal(u.DeepCopy().Object)
		if err != nil {
			t.Fatal(err)
		}
		again := &unstructured.Unstructured{}
		if err := again.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		if got := again.GetLabels()[awv1beta2.LabelAppWrapper]; utf8.ValidString(name) && got != name && u.GetLabels() != nil {
			t.Fatalf("the label is %q in %s", got, text)
		}
		if at, err := podset.TemplateAt(u.Object, path); err != nil {
			t.Fatalf("the path %q was removed: %v", path, err)
		} else if found, _, _ := unstructured.NestedFieldNoCopy(at, "metadata", "labels", awv1beta2.LabelAppWrapper); found != name {
			t.Fatalf("the label of the pods is %v in %s", found, text)
		}
	})
}
