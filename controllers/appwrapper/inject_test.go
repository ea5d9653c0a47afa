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

// parseAppWrapper parses an AppWrapper and sets the pod sets in its status, as the first reconcile does.
func parseAppWrapper(t testing.TB, text string) *awv1beta2.AppWrapper {
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

// appWrapperYAML returns an AppWrapper with a single component and optional pod set infos.
func appWrapperYAML(infos, template string) string {
	return "{metadata: {name: aw, namespace: ns}, spec: {components: [{" + infos + "template: " + template + "}]}}"
}

func extendedSettings() Settings {
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

// [appwrapper-11] [appwrapper-12] [appwrapper-13] [appwrapper-14] D28 D29: buildObject returns the golden objects of each AppWrapper.
func TestBuildObjectGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/inject/*/appwrapper.yaml")
	if err != nil || len(cases) < 6 {
		t.Fatalf("got cases %v, error %v, want at least 6", cases, err)
	}
	for _, file := range cases {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			aw := parseAppWrapper(t, string(text))
			settings := defaultSettings()
			if strings.Contains(string(text), "extended settings") {
				settings = extendedSettings()
			}
			var out []byte
			for i := range aw.Spec.Components {
				u, warnings, err := buildObject(aw, i, settings)
				if err != nil {
					t.Fatal(err)
				}
				if len(warnings) != 0 {
					t.Errorf("got warnings %q, want none", warnings)
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

// buildObject rejects templates that contradict the AppWrapper or its pod sets.
func TestBuildObjectRejects(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"another namespace", appWrapperYAML("", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: other}}`), `metadata.namespace is "other": leave it out`},
		{"another AppWrapper label on the object [D28]", appWrapperYAML("", `{apiVersion: v1, kind: ConfigMap, metadata: {labels: {workload.codeflare.dev/appwrapper: other}}}`),
			"conflict updating labels: conflict for key=workload.codeflare.dev/appwrapper, value1=other, value2=aw: remove the key from the pod template"},
		{"labels that are not a map", appWrapperYAML("", `{apiVersion: v1, kind: ConfigMap, metadata: {labels: [x]}}`), "labels is [x]: write a map"},
		{"metadata that is not a map", appWrapperYAML("", `{apiVersion: v1, kind: ConfigMap, metadata: x}`), "metadata is x: write a map"},
		{"conflicting annotation", appWrapperYAML("podSetInfos: [{annotations: {a: '2'}}], ", podTemplate), "pod template at template: conflict updating annotations: conflict for key=a, value1=1, value2=2: remove the key from the pod template"},
		{"conflicting label", appWrapperYAML("podSetInfos: [{labels: {l: '2'}}], ", podTemplate), "pod template at template: conflict updating labels: conflict for key=l, value1=1, value2=2: remove the key from the pod template"},
		{"AppWrapper label in a pod set info", appWrapperYAML("podSetInfos: [{labels: {workload.codeflare.dev/appwrapper: x}}], ", podTemplate), "conflict updating labels: conflict for key=workload.codeflare.dev/appwrapper, value1=aw, value2=x: remove the key from the pod template"},
		{"conflicting node selector", appWrapperYAML("podSetInfos: [{nodeSelector: {d: '2'}}], ", podTemplate), "pod template at template: conflict updating nodeSelector: conflict for key=d, value1=1, value2=2: remove the key from the pod template"},
		{"label that is a number", appWrapperYAML("podSetInfos: [{labels: {l: '2'}}], ", strings.Replace(podTemplate, `l: "1"`, "l: 2", 1)), "conflict updating labels: conflict for key=l, value1=2, value2=2: remove the key from the pod template"},
		{"tolerations that are not a list", appWrapperYAML("podSetInfos: [{tolerations: [{key: k}]}], podSets: [{path: template}], ", `{apiVersion: example.com/v1, kind: X, spec: {tolerations: none}}`), "tolerations is none: write a list"},
		{"scheduling gates that are not a list", appWrapperYAML("podSetInfos: [{schedulingGates: [{name: g}]}], podSets: [{path: template}], ", `{apiVersion: example.com/v1, kind: X, spec: {schedulingGates: 5}}`), "schedulingGates is 5: write a list"},
		{"no pod spec", appWrapperYAML("podSets: [{path: template}], ", `{apiVersion: example.com/v1, kind: X}`), "spec is <nil>: write a pod spec"},
		{"missing pod template", appWrapperYAML("podSets: [{path: template.spec.pods}], ", `{apiVersion: example.com/v1, kind: X, spec: {}}`), "at path position 'template.spec' missing field 'pods'"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u, _, err := buildObject(parseAppWrapper(t, test.text), 0, defaultSettings())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got object %v, error %v, want an error that contains %q", u, err, test.want)
			}
		})
	}
	aw := parseAppWrapper(t, appWrapperYAML("", podTemplate))
	aw.Spec.Components[0].Template.Raw = []byte("{")
	if u, _, err := buildObject(aw, 0, defaultSettings()); err == nil {
		t.Errorf("invalid JSON: got object %v, want an error", u)
	}
}

// buildObject does not change an invalid affinity, and returns a warning.
func TestInvalidAffinityIsNotChanged(t *testing.T) {
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
		aw := parseAppWrapper(t, appWrapperYAML("podSets: [{path: template}], ", `{apiVersion: example.com/v1, kind: X, spec: {affinity: `+affinity+`, containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}`))
		before, err := podset.Decode(&aw.Spec.Components[0])
		if err != nil {
			t.Fatal(err)
		}
		u, warnings, err := buildObject(aw, 0, defaultSettings())
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "pod template at template: the pods are not kept away") {
			t.Errorf("%s: got warnings %q, error %v, want one warning", affinity, warnings, err)
			continue
		}
		got, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec")
		want, _, _ := unstructured.NestedFieldNoCopy(before.Object, "spec")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got spec %v, want it unchanged", affinity, got)
		}
	}
}

// [appwrapper-12] requestsResource considers requests and limits of containers and init containers.
func TestRequestsResource(t *testing.T) {
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

// No affinity is injected without Autopilot, or with its injection disabled.
func TestAffinityIsNotInjectedWhenDisabled(t *testing.T) {
	injectionDisabled := defaultSettings()
	injectionDisabled.Autopilot.InjectAntiAffinities = false
	withoutAutopilot := defaultSettings()
	withoutAutopilot.Autopilot = nil
	for name, settings := range map[string]Settings{"injection disabled": injectionDisabled, "no Autopilot": withoutAutopilot} {
		u, warnings, err := buildObject(parseAppWrapper(t, appWrapperYAML("", podTemplate)), 0, settings)
		if err != nil || len(warnings) != 0 {
			t.Fatalf("%s: got warnings %q, error %v, want none", name, warnings, err)
		}
		if _, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "affinity"); found {
			t.Errorf("%s: got an affinity, want none", name)
		}
	}
}

// buildObject does not modify the cached AppWrapper, and two objects share no memory.
func TestBuildObjectCopiesTemplate(t *testing.T) {
	aw := parseAppWrapper(t, appWrapperYAML("podSetInfos: [{labels: {q: r}, tolerations: [{key: k}]}], ", podTemplate))
	before := aw.DeepCopy()
	first, _, err := buildObject(aw, 0, defaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	firstCopy := first.DeepCopy()
	second, _, err := buildObject(aw, 0, defaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	second.SetLabels(map[string]string{"other": "x"})
	if !reflect.DeepEqual(aw, before) {
		t.Error("buildObject modified the AppWrapper")
	}
	if !reflect.DeepEqual(first, firstCopy) {
		t.Error("a change of the second object modified the first")
	}
}

// A pod set without an info gets only the AppWrapper label.
func TestPodSetWithoutInfo(t *testing.T) {
	aw := parseAppWrapper(t, appWrapperYAML("podSetInfos: [{labels: {q: r}}], podSets: [{path: template.a}, {path: template.b}], ", `{apiVersion: example.com/v1, kind: X, a: {spec: {}}, b: {spec: {}}}`))
	u, _, err := buildObject(aw, 0, defaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	a, _, _ := unstructured.NestedStringMap(u.Object, "a", "metadata", "labels")
	b, _, _ := unstructured.NestedStringMap(u.Object, "b", "metadata", "labels")
	if len(a) != 2 || a["q"] != "r" || len(b) != 1 || b[awv1beta2.LabelAppWrapper] != "aw" {
		t.Errorf("got labels %v and %v, want the AppWrapper label in both and the label of the info in the first", a, b)
	}
}

// buildObject does not panic for any template, and returns plain JSON [D27] with the AppWrapper label.
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
		u, _, err := buildObject(aw, 0, extendedSettings())
		if err != nil {
			return
		}
		text, err := json.Marshal(u.DeepCopy().Object)
		if err != nil {
			t.Fatal(err)
		}
		decoded := &unstructured.Unstructured{}
		if err := decoded.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		if got := decoded.GetLabels()[awv1beta2.LabelAppWrapper]; utf8.ValidString(name) && got != name && u.GetLabels() != nil {
			t.Fatalf("got label %q, want %q in %s", got, name, text)
		}
		if template, err := podset.TemplateAt(u.Object, path); err != nil {
			t.Fatalf("got error %v, want a pod template at %q", err, path)
		} else if found, _, _ := unstructured.NestedFieldNoCopy(template, "metadata", "labels", awv1beta2.LabelAppWrapper); found != name {
			t.Fatalf("got pod label %v, want %q in %s", found, name, text)
		}
	})
}
