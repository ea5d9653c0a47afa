package podset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// parsePodSets parses a YAML list of pod sets.
func parsePodSets(t testing.TB, text string) []awv1beta2.AppWrapperPodSet {
	t.Helper()
	var sets []awv1beta2.AppWrapperPodSet
	if err := yaml.UnmarshalStrict([]byte(text), &sets); err != nil {
		t.Fatal(err)
	}
	return sets
}

const rayJob = `{apiVersion: ray.io/v1, kind: RayJob, spec: {submitterPodTemplate: ` + pod + `, rayClusterSpec: {headGroupSpec: {template: ` + pod + `}, workerGroupSpecs: [{replicas: 2, numOfHosts: 2, template: ` + pod + `}]}}}`

const leaderWorkerSet = `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, spec: {replicas: 2, leaderWorkerTemplate: {size: 3, leaderTemplate: ` + pod + `, workerTemplate: ` + pod + `}}}`

// [appwrapper-28] [appwrapper-34] Check compares declared pod sets with the template and the inferred pod sets.
func TestCheck(t *testing.T) {
	const workers, driver = "template.spec.replicatedJobs[0].template.spec.template", "template.spec.replicatedJobs[1].template.spec.template"
	for _, test := range []struct {
		name, text, sets string
		count            int
		want             []string
	}{
		{"no declaration", jobSet, "[]", 2, nil},
		{"all pod sets declared", jobSet, "[{path: '" + workers + "', replicas: 4}, {path: '" + driver + "'}]", 2, nil},
		{"another order", jobSet, "[{path: '" + driver + "'}, {path: '" + workers + "', replicas: 4}]", 2, nil},
		{"missing pod set", jobSet, "[{path: '" + workers + "', replicas: 4}]", 2, []string{
			"c.podSets: DeclaredPodSet count 1 differs from inferred count 2: declare all of them, or remove podSets",
			"c.podSets: PodSet with path '" + driver + "' is missing: add it"}},
		{"other replicas", jobSet, "[{path: '" + workers + "'}, {path: '" + driver + "'}]", 2, []string{
			"c.podSets: replica count 1 differs from inferred count 4 for PodSet at path position '" + workers + "': correct replicas"}},
		{"duplicate path", jobSet, "[{path: '" + workers + "', replicas: 4}, {path: '" + driver + "'}, {path: '" + driver + "'}]", 3, []string{
			"c.podSets: multiple DeclaredPodSets with path '" + driver + "': remove all but one",
			"c.podSets: DeclaredPodSet count 3 differs from inferred count 2: declare all of them, or remove podSets"}},
		{"empty path", jobSet, "[{path: ''}]", 2, []string{
			"c.podSets[0].path: podspec must specify path",
			"c.podSets: DeclaredPodSet count 1 differs from inferred count 2: declare all of them, or remove podSets",
			"c.podSets: PodSet with path '" + workers + "' is missing: add it",
			"c.podSets: PodSet with path '" + driver + "' is missing: add it"}},
		{"path to metadata", `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {}}`, "[{path: template.metadata}]", 1, []string{
			"c.podSets[0].path: path does not refer to a v1.PodSpecTemplate: content at template.metadata does not contain a spec: write a path such as template.spec.template",
			"c.podSets: PodSet with path 'template' is missing: add it"}},
		{"negative replicas", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 0, template: ` + pod + `}}`, "[{path: template.spec.template, replicas: -2}]", 1, []string{
			"c.podSets[0].replicas: replicas must be 0 or more"}},
		{"unknown kind", `{apiVersion: example.com/v1, kind: Own, spec: {a: ` + pod + `, b: ` + pod + `}}`, "[{path: template.spec.a, replicas: 7}]", 1, nil},
		{"invalid path in an unknown kind", `{apiVersion: example.com/v1, kind: Own, spec: {}}`, "[{path: template.spec.a}, {path: template.spec.a}]", 2, []string{
			"c.podSets[0].path: path does not refer to a v1.PodSpecTemplate: at path position 'template.spec' missing field 'a': write a path such as template.spec.template",
			"c.podSets[1].path: path does not refer to a v1.PodSpecTemplate: at path position 'template.spec' missing field 'a': write a path such as template.spec.template",
			"c.podSets: multiple DeclaredPodSets with path 'template.spec.a': remove all but one"}},
		{"pod sets cannot be inferred", `{apiVersion: ray.io/v1, kind: RayJob, spec: {clusterSelector: {a: b}}}`, "[]", 0, []string{
			"c.template: error inferring PodSets: spec.clusterSelector selects an existing Ray cluster, whose pods are not in the AppWrapper: " +
				"set spec.rayClusterSpec instead, or create the object outside of an AppWrapper"}},
		// A TrainJob is rejected even with declared pod sets, because the requested quota would contain no GPU.
		{"TrainJob", trainJob, "[]", 0, []string{"c.template: error inferring PodSets: " + errTrainJob.Error()}},
		{"TrainJob with a declaration", trainJob, "[{path: 'template.spec.podTemplateOverrides[0]', replicas: 4}]", 1, []string{
			"c.template: error inferring PodSets: " + errTrainJob.Error()}},
		{"no pods", `{apiVersion: v1, kind: Service}`, "[]", 0, nil},
		// The first declaration has 3 of 4 workers, which the CodeFlare operator accepted.
		{"kind that the CodeFlare operator did not know", leaderWorkerSet, "[{path: template.spec.leaderWorkerTemplate.leaderTemplate, replicas: 2}, {path: template.spec.leaderWorkerTemplate.workerTemplate, replicas: 3}]", 2, nil},
		{"kind that the CodeFlare operator did not know, one pod set declared", leaderWorkerSet, "[{path: template.spec.leaderWorkerTemplate.leaderTemplate, replicas: 2}]", 1, nil},
		{"kind that the CodeFlare operator did not know, no declaration", leaderWorkerSet, "[]", 2, nil},
		{"kind that the CodeFlare operator did not know, invalid replicas", `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, spec: {replicas: x, leaderWorkerTemplate: {workerTemplate: ` + pod + `}}}`,
			"[{path: template.spec.leaderWorkerTemplate.workerTemplate}]", 1, nil},
		{"RayJob without the submitter", rayJob, "[{path: template.spec.rayClusterSpec.headGroupSpec.template}, {path: 'template.spec.rayClusterSpec.workerGroupSpecs[0].template', replicas: 4}]", 3, nil},
		{"RayJob with the submitter", rayJob, "[{path: template.spec.rayClusterSpec.headGroupSpec.template}, {path: 'template.spec.rayClusterSpec.workerGroupSpecs[0].template', replicas: 4}, {path: template.spec.submitterPodTemplate}]", 3, nil},
		{"RayJob with declared replicas that ignore numOfHosts", rayJob, "[{path: template.spec.rayClusterSpec.headGroupSpec.template}, {path: 'template.spec.rayClusterSpec.workerGroupSpecs[0].template', replicas: 2}]", 3, []string{
			"c.podSets: replica count 2 differs from inferred count 4 for PodSet at path position 'template.spec.rayClusterSpec.workerGroupSpecs[0].template': correct replicas"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			count, known, errs := Check(parsePodSets(t, test.sets), parseObject(t, test.text), field.NewPath("c"))
			if count != test.count {
				t.Errorf("got count %d, want %d", count, test.count)
			}
			var got []string
			for _, err := range errs {
				got = append(got, err.Field+": "+err.Detail)
				known = known || strings.HasSuffix(err.Field, "template")
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%q\nwant\n%q", got, test.want)
			}
			if !known {
				t.Error("got known false without an error for c.template")
			}
		})
	}
}

// Check accepts the samples.
func TestSamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("../../../config/samples/appwrapper_*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("samples %v: %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		aw := &awv1beta2.AppWrapper{}
		if err := yaml.UnmarshalStrict(text, aw); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		sets := 0
		for i := range aw.Spec.Components {
			u, err := Decode(&aw.Spec.Components[i])
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			count, known, errs := Check(aw.Spec.Components[i].PodSets, u, field.NewPath("c"))
			if len(errs) != 0 || !known {
				t.Errorf("%s: got known %t, errors %v, want true and none", file, known, errs)
			}
			sets += count
		}
		if sets == 0 {
			t.Errorf("%s: got no pod sets", file)
		}
	}
}

func TestDecodeRejects(t *testing.T) {
	for _, raw := range []string{"", "  ", "null", "[]", `"x"`, "{", `{"kind":"Pod"}`, `{"apiVersion":"v1"}`, `{"apiVersion":1,"kind":{}}`} {
		c := &awv1beta2.AppWrapperComponent{}
		c.Template.Raw = []byte(raw)
		if u, err := Decode(c); err == nil {
			t.Errorf("%q: got %v, want an error", raw, u)
		}
	}
	c := &awv1beta2.AppWrapperComponent{}
	c.Template.Object = &awv1beta2.AppWrapper{}
	if _, err := Decode(c); err == nil || !strings.Contains(err.Error(), "apiVersion") {
		t.Errorf("object without a kind: got error %v, want one about apiVersion", err)
	}
	c.Template.Object = parseObject(t, `{apiVersion: v1, kind: Pod, spec: {n: 5}}`)
	if u, err := Decode(c); err != nil || u.GetKind() != "Pod" {
		t.Errorf("object: got %v, error %v, want a Pod", u, err)
	}
}

// Infer does not panic. Its pod sets pass Check, and their replicas are not negative.
func FuzzInfer(f *testing.F) {
	for _, text := range []string{jobSet, rayJob, leaderWorkerSet, job("parallelism: 2, "), `{apiVersion: v1, kind: Pod, spec: {}}`, `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Master: 1, Worker: {template: []}}}}`} {
		f.Add(newComponent(f, text).Template.Raw, "", int32(1))
	}
	for key := range rules {
		version, kind, _ := strings.Cut(key, ":")
		f.Add([]byte(`{"apiVersion":"`+version+`","kind":"`+kind+`","spec":{"template":{"spec":{}},"replicas":2}}`), "template.spec.template", int32(2))
	}
	f.Fuzz(func(t *testing.T, raw []byte, path string, replicas int32) {
		c := &awv1beta2.AppWrapperComponent{}
		c.Template.Raw = raw
		u, err := Decode(c)
		if err != nil {
			return
		}
		Check([]awv1beta2.AppWrapperPodSet{{Path: path, Replicas: &replicas}}, u, nil)
		sets, err := Infer(u)
		if err != nil {
			return
		}
		if count, _, errs := Check(sets, u, nil); count != len(sets) || len(errs) != 0 {
			t.Fatalf("%s: Check of the inferred pod sets %s: got count %d, errors %v", raw, formatPodSets(sets), count, errs)
		}
		for _, set := range sets {
			if *set.Replicas < 0 {
				t.Fatalf("%s: got negative replicas: %s", raw, formatPodSets(sets))
			}
		}
		if minReady, total := MinReady(u, sets), Total(sets); minReady < 0 || minReady > total {
			t.Fatalf("%s: got MinReady %d, want 0 to %d", raw, minReady, total)
		}
	})
}
