package render

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDifferences(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted, live string
		want         []string
	}{
		"the same":             {"{a: {b: 1}}", "{a: {b: 1}}", nil},
		"more in the cluster":  {"{a: {b: 1}}", "{a: {b: 1, c: 2}, status: {}}", nil},
		"another value":        {"{a: {b: 1}}", "{a: {b: 2}}", []string{"a.b: 2, and would be 1"}},
		"missing":              {"{a: {b: x}}", "{a: {}}", []string{`a.b: "x" is missing`}},
		"nothing and empty":    {"{a: {}, b: [], c: '', d: false, e: null}", "{}", nil},
		"zero is something":    {"{a: 0}", "{}", []string{"a: 0 is missing"}},
		"whole numbers":        {"{a: 1}", "{a: 1.0}", nil},
		"quantities":           {"{resources: {limits: {cpu: 1000m, memory: 1Gi}}}", "{resources: {limits: {cpu: '1', memory: 1024Mi}}}", nil},
		"other quantities":     {"{resources: {limits: {cpu: 900m}}}", "{resources: {limits: {cpu: '1'}}}", []string{`resources.limits.cpu: "1", and would be "900m"`}},
		"texts like numbers":   {"{data: {a: 1000m}}", "{data: {a: '1'}}", []string{`data.a: "1", and would be "1000m"`}},
		"lists by name":        {"{l: [{name: b, v: 1}]}", "{l: [{name: a, v: 2}, {name: b, v: 1}]}", nil},
		"lists by place":       {"{l: [x, v]}", "{l: [x, z]}", []string{`l[1]: "z", and would be "v"`}},
		"an element less":      {"{l: [x, v]}", "{l: [x]}", []string{`l[1]: "v" is missing`}},
		"a named element less": {"{l: [{name: a}]}", "{l: [{name: b}]}", []string{`l[a]: {"name":"a"} is missing`}},
		"owners": {"{metadata: {ownerReferences: [{kind: A, name: a, controller: true}]}}",
			"{metadata: {ownerReferences: [{kind: B, name: a}, {kind: A, name: a, uid: u, controller: true}]}}", nil},
		"another shape": {"{a: {b: 1}}", "{a: [1]}", []string{`a: [1], and would be {"b":1}`}},
		"long values":   {"{a: " + strings.Repeat("x", 200) + "}", "{a: w}", []string{`a: "w", and would be "` + strings.Repeat("x", 99) + "..."}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range Differences(object(t, tc.wanted), object(t, tc.live)) {
				got = append(got, d.String())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// AppWrappers may hold Secrets, whose values are no business of the screen.
func TestWhatSecretsHoldIsNotShown(t *testing.T) {
	for want, d := range map[string]Difference{
		"data.key: is another one":           {Path: "data.key", Wanted: "hunter2", Live: "hunter3"},
		"stringData: is another one":         {Path: "stringData", Wanted: map[string]any{"key": "hunter2"}},
		`type: "Opaque", and would be "tls"`: {Path: "type", Wanted: "tls", Live: "Opaque"},
	} {
		if got := d.of("Secret"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := (Difference{Path: "data.key", Wanted: "a", Live: "b"}).of("ConfigMap"); got != `data.key: "b", and would be "a"` {
		t.Error(got)
	}
}
