package modelcatalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
)

func always() bool { return true }

func validSources(names ...string) []sourceCandidate {
	var all []sourceCandidate
	for _, name := range names {
		all = append(all, sourceCandidate{name: name, hasKey: true})
	}
	return all
}

// summarize returns a line with name, state and reason for each source.
func summarize(v sourceSelection) []string {
	var lines []string
	for _, s := range v.statuses {
		lines = append(lines, fmt.Sprintf("%s %s %s", s.Name, s.State, s.Reason))
	}
	return lines
}

// [modelregistry-97] Sources with a valid name and the key sources.yaml are mounted in the order of their names. The others are
// Rejected [S10].
func TestSelectSources(t *testing.T) {
	long := strings.Repeat("a", 55)
	all := append(validSources("zebra", "dotted.name", long, long+"a", "alpha"), sourceCandidate{name: "without-key"}, sourceCandidate{name: "broken", hasKey: true, contentProblem: "it is empty"})
	selection := selectSources(all, nil, always)
	if want := []string{long, "alpha", "broken", "zebra"}; !slices.Equal(selection.mounted, want) {
		t.Errorf("mounted %v, want %v", selection.mounted, want)
	}
	want := []string{
		long + " Accepted Mounted", long + "a Rejected NameTooLong", "alpha Accepted Mounted", "broken Accepted ContentNotUnderstood",
		"dotted.name Rejected NameInvalid", "without-key Rejected KeyMissing", "zebra Accepted Mounted",
	}
	if diff := cmp.Diff(want, summarize(selection)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, s := range selection.statuses {
		if (s.Message == "") != (s.Reason == ReasonMounted) || len(s.Message) > 300 {
			t.Errorf("%s: message %q", s.Name, s.Message)
		}
	}
	if selection := selectSources(nil, nil, always); len(selection.mounted)+len(selection.statuses) > 0 || selection.postponed {
		t.Errorf("got selection %+v without sources, want an empty one", selection)
	}
}

// [S10] Users with create on ConfigMaps cannot exceed the limits of pod and status.
func TestSelectSourcesLimit(t *testing.T) {
	var names []string
	for i := range 130 {
		names = append(names, fmt.Sprintf("s-%03d", i))
	}
	selection := selectSources(validSources(names...), nil, always)
	if len(selection.mounted) != maxSources || selection.mounted[0] != "s-000" || len(selection.statuses) != maxReportedSources || selection.omitted != 30 {
		t.Errorf("got %d mounted, %d reported and %d omitted sources", len(selection.mounted), len(selection.statuses), selection.omitted)
	}
	if next := selectSources(validSources(names...), []string{"s-120"}, always); len(next.mounted) != maxSources || !slices.Contains(next.mounted, "s-120") {
		t.Errorf("got mounted sources %v, want the one that was mounted before among them", next.mounted)
	}
	if got := selection.statuses[maxSources].Reason; got != ReasonTooMany {
		t.Errorf("got reason %s of the first source over the limit, want %s", got, ReasonTooMany)
	}
}

// [S10] New sources are postponed if the pod was replaced too often. Mounted sources are kept, and removals do not count.
func TestSelectSourcesPostpones(t *testing.T) {
	never := func() bool { return false }
	selection := selectSources(validSources("old", "new"), []string{"old", "gone"}, never)
	if !slices.Equal(selection.mounted, []string{"old"}) || !selection.postponed || summarize(selection)[0] != "new Rejected Postponed" {
		t.Errorf("got mounted sources %v and statuses %v, want only old mounted and new postponed", selection.mounted, summarize(selection))
	}
	called := false
	selection = selectSources(validSources("old"), []string{"old", "gone"}, func() bool { called = true; return false })
	if called || selection.postponed || !slices.Equal(selection.mounted, []string{"old"}) {
		t.Error("without an addition, want the mounted source kept and mayAdd not called")
	}
}

func TestContentProblem(t *testing.T) {
	for text, want := range map[string]string{
		"catalogs: []":                      "",
		"catalogs:\n- id: a\n  new: [1]\n":  "",
		"future: 1":                         "",
		"catalogs:":                         "",
		"":                                  "the content is empty: add a section such as catalogs",
		"catalogs: {}":                      "catalogs must be a list",
		"mcp_catalogs: [a]":                 "mcp_catalogs[0] must be a map",
		"serving_runtime_catalogs: x":       "serving_runtime_catalogs must be a list",
		"labels: [{name: a}, b]":            "labels[1] must be a map",
		"catalogs: [":                       "the key is not valid YAML",
		"- a":                               "the key must be a map of sections such as catalogs",
		"agent_catalogs: &a [{}]\nx: *nope": "the key is not valid YAML",
	} {
		got := contentProblem(text)
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) || len(got) > maxProblemBytes {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestTrimContent(t *testing.T) {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{resources.SourceLabel: "true"}, Annotations: map[string]string{"x": "y"}},
		Data:       map[string]string{resources.SourcesKey: "catalogs: [", "other": strings.Repeat("x", 1000)}, BinaryData: map[string][]byte{"b": {1}},
	}
	out, err := trimContent(m)
	trimmed, ok := out.(*corev1.ConfigMap)
	if err != nil || !ok || len(trimmed.Data) != 1 || trimmed.BinaryData != nil || trimmed.Annotations != nil || trimmed.Labels[resources.SourceLabel] != resources.SourceLabelValue {
		t.Fatalf("trimContent returned %+v, error %v", out, err)
	}
	if text, hasKey := trimmed.Data[resources.SourcesKey]; !hasKey || text != "" {
		t.Errorf("got data %q, want the key without its content", trimmed.Data)
	}
	out, _ = trimContent(&corev1.ConfigMap{Data: map[string]string{"other": "x"}})
	if m, _ := out.(*corev1.ConfigMap); len(m.Data) > 0 {
		t.Error("the trimmed ConfigMap has data without the key sources.yaml")
	}
	if out, err := trimContent("tombstone"); out != "tombstone" || err != nil {
		t.Errorf("trimContent of a tombstone returned %v, error %v, want it unchanged", out, err)
	}
}

// Content is read once per version, and only in the namespace of a Catalog.
func TestContentIsReadOnce(t *testing.T) {
	labelled := func(namespace, text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine", UID: types.UID(namespace), Labels: map[string]string{resources.SourceLabel: "true"}},
			Data: map[string]string{resources.SourcesKey: text}}
	}
	env := newTestEnv(t, labelled("home", "catalogs: ["), labelled("other", "catalogs: ["))
	reads := &fakeCache{Reader: env.server}
	env.r.extraCaches.apiReader = reads
	candidate := func() sourceCandidate {
		all, err := env.r.extraCaches.listCandidates(t.Context(), "home")
		if err != nil || len(all) != 1 {
			t.Fatalf("listCandidates returned %v, error %v, want one source", all, err)
		}
		return all[0]
	}
	if c := candidate(); !c.hasKey || !strings.HasPrefix(c.contentProblem, "the key is not valid YAML") || candidate() != c || reads.lists != 1 {
		t.Errorf("got source %+v after %d reads", c, reads.lists)
	}
	changed := labelled("home", strings.Repeat("#", maxCheckedBytes+1))
	if err := env.server.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if c := candidate(); c.contentProblem != "the content has 262145 bytes, and at most 262144 are checked: split it into several ConfigMaps" || candidate() != c || reads.lists != 2 {
		t.Errorf("got source %+v after %d reads", c, reads.lists)
	}
}

// The mounted sources are read from the volumes of a Deployment.
func TestMountedSources(t *testing.T) {
	in := kubernetesInputs()
	in.SourceConfigMaps = []string{"a", "b"}
	d := serverOf(t, newCatalog(), in)
	if got := mountedSources(d.Spec.Template.Spec.Volumes); !slices.Equal(got, in.SourceConfigMaps) {
		t.Errorf("got mounted sources %v", got)
	}
	foreign := []corev1.Volume{{Name: "labeled-x"}, {Name: "labeled-x", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}}
	if got := mountedSources(foreign); got != nil {
		t.Errorf("got mounted sources %v", got)
	}
}
