package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"
)

// object returns an object with the fields in YAML. Without metadata it is ns/x.
func object(t *testing.T, kind, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte("{apiVersion: v1, kind: " + kind + ", metadata: {name: x, namespace: ns, uid: z}}"))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	if data, err = yaml.YAMLToJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	more := &unstructured.Unstructured{}
	if err := more.UnmarshalJSON([]byte(`{"kind":"More","body":` + string(data) + `}`)); err != nil {
		t.Fatal(err)
	}
	body, _ := more.Object["body"].(map[string]any)
	for name, v := range body {
		u.Object[name] = v
	}
	return u
}

func parseFields(t *testing.T, text string) fieldTree {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return decodeFields(ownEntry(string(data)).FieldsV1)
}

type comparison struct {
	kind              string // default: a kind without a Go type
	want, live, owned string // YAML; owned in the form of managed fields
	matches           bool
}

func (c comparison) run(t *testing.T) {
	if c.kind == "" {
		c.kind = "Widget"
	}
	want, live := object(t, c.kind, c.want), object(t, c.kind, c.live)
	if got := matchesDesired(want, live, parseFields(t, c.owned)); got != c.matches {
		t.Errorf("matchesDesired: got %v, want %v", got, c.matches)
	}
}

func TestMatchesDesiredFields(t *testing.T) {
	for name, test := range map[string]comparison{
		"equal":                                    {want: `{spec: {a: 1}}`, live: `{spec: {a: 1}}`, owned: `{f:spec: {f:a: {}}}`, matches: true},
		"foreign fields":                           {want: `{spec: {a: 1}}`, live: `{spec: {a: 1, b: 2}, status: {c: 3}}`, owned: `{f:spec: {f:a: {}}}`, matches: true},
		"another value":                            {want: `{spec: {a: 1}}`, live: `{spec: {a: 2}}`, owned: `{f:spec: {f:a: {}}}`},
		"another type":                             {want: `{spec: {a: 1}}`, live: `{spec: {a: "1"}}`, owned: `{f:spec: {f:a: {}}}`},
		"missing":                                  {want: `{spec: {a: 1}}`, live: `{spec: {}}`, owned: `{f:spec: {f:a: {}}}`},
		"desired but not owned":                    {want: `{spec: {a: 1, b: 2}}`, live: `{spec: {a: 1, b: 2}}`, owned: `{f:spec: {f:a: {}}}`},
		"owned but not desired":                    {want: `{spec: {a: 1}}`, live: `{spec: {a: 1, b: 2}}`, owned: `{f:spec: {f:a: {}, f:b: {}}}`},
		"nested field owned but not desired":       {want: `{spec: {a: 1}}`, live: `{spec: {a: 1, b: {c: 2}}}`, owned: `{f:spec: {f:a: {}, f:b: {f:c: {}}}}`},
		"no owned fields":                          {want: `{spec: {a: 1}}`, live: `{spec: {a: 1}}`, owned: `{}`},
		"no desired fields":                        {want: `{}`, live: `{}`, owned: `{f:spec: {f:a: {}}}`},
		"scalar desired for a map":                 {want: `{spec: 1}`, live: `{spec: {a: 1}}`, owned: `{f:spec: {f:a: {}}}`},
		"map desired for a scalar":                 {want: `{spec: {a: {b: 1}}}`, live: `{spec: {a: 1}}`, owned: `{f:spec: {f:a: {}}}`},
		"empty map":                                {want: `{spec: {a: {}}}`, live: `{spec: {a: {}}}`, owned: `{f:spec: {f:a: {}}}`, matches: true},
		"value desired in an empty map":            {want: `{spec: {a: {b: 1}}}`, live: `{spec: {a: {}}}`, owned: `{f:spec: {f:a: {}}}`},
		"empty map desired for a map with a value": {want: `{spec: {a: {}}}`, live: `{spec: {a: {b: 1}}}`, owned: `{f:spec: {f:a: {f:b: {}}}}`},
		"omitted false":                            {want: `{spec: {a: false, b: 1}}`, live: `{spec: {b: 1}}`, owned: `{f:spec: {f:a: {}, f:b: {}}}`, matches: true},
		"omitted zero, not owned":                  {want: `{spec: {a: 0, b: 1}}`, live: `{spec: {b: 1}}`, owned: `{f:spec: {f:b: {}}}`, matches: true},
		"false desired for true":                   {want: `{spec: {a: false}}`, live: `{spec: {a: true}}`, owned: `{f:spec: {f:a: {}}}`},
		"labels": {want: `{metadata: {name: x, labels: {a: b}}}`, live: `{metadata: {name: x, labels: {a: b, c: d}}}`,
			owned: `{f:metadata: {f:labels: {f:a: {}}}}`, matches: true},
		"owned map itself": {want: `{metadata: {name: x, labels: {a: b}}}`, live: `{metadata: {name: x, labels: {a: b}}}`,
			owned: `{f:metadata: {f:labels: {.: {}, f:a: {}}}}`, matches: true},
		"owner reference": {
			want:  `{metadata: {ownerReferences: [{uid: "1", name: o, controller: true}]}}`,
			live:  `{metadata: {ownerReferences: [{uid: "2", name: p}, {uid: "1", name: o, controller: true}]}}`,
			owned: `{f:metadata: {f:ownerReferences: {'k:{"uid":"1"}': {}}}}`, matches: true},
		"owner reference that is not a controller reference": {
			want:  `{metadata: {ownerReferences: [{uid: "1", name: o, controller: true}]}}`,
			live:  `{metadata: {ownerReferences: [{uid: "1", name: o}]}}`,
			owned: `{f:metadata: {f:ownerReferences: {'k:{"uid":"1"}': {}}}}`},
		"additional owned reference": {
			want:  `{metadata: {ownerReferences: [{uid: "1", name: o}]}}`,
			live:  `{metadata: {ownerReferences: [{uid: "1", name: o}, {uid: "2", name: p}]}}`,
			owned: `{f:metadata: {f:ownerReferences: {'k:{"uid":"1"}': {}, 'k:{"uid":"2"}': {}}}}`},
	} {
		t.Run(name, test.run)
	}
}

func TestMatchesDesiredLists(t *testing.T) {
	const twoEnv = `{f:spec: {f:env: {'k:{"name":"A"}': {.: {}, f:name: {}, f:value: {}}, 'k:{"name":"B"}': {.: {}, f:name: {}, f:value: {}}}}}`
	const twoPorts = `{f:spec: {f:ports: {'k:{"port":53,"protocol":"TCP"}': {.: {}, f:port: {}}, 'k:{"port":53,"protocol":"UDP"}': {.: {}, f:port: {}, f:protocol: {}}}}}`
	const tags = `{f:spec: {f:tags: {'v:"x"': {}, 'v:"w"': {}}}}`
	for name, test := range map[string]comparison{
		"elements in another order": {want: `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}]}}`,
			live: `{spec: {env: [{name: C, value: "3"}, {name: B, value: "2"}, {name: A, value: "1"}]}}`, owned: twoEnv, matches: true},
		"values of two elements swapped": {want: `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}]}}`,
			live: `{spec: {env: [{name: A, value: "2"}, {name: B, value: "1"}]}}`, owned: twoEnv},
		"element removed": {want: `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}]}}`,
			live: `{spec: {env: [{name: A, value: "1"}]}}`, owned: twoEnv},
		"element not desired": {want: `{spec: {env: [{name: A, value: "1"}]}}`,
			live: `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}]}}`, owned: twoEnv},
		"element not owned": {want: `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}, {name: C}]}}`,
			live: `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}, {name: C}]}}`, owned: twoEnv},
		"element renamed": {want: `{spec: {env: [{name: A, value: "1"}, {name: C, value: "2"}]}}`,
			live: `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}]}}`, owned: twoEnv},
		"foreign field in an element": {want: `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}]}}`,
			live: `{spec: {env: [{name: A, value: "1", more: 1}, {name: B, value: "2"}]}}`, owned: twoEnv, matches: true},
		"map desired for a list": {want: `{spec: {env: {A: "1", B: "2"}}}`,
			live: `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}]}}`, owned: twoEnv},
		"list desired for a map": {want: `{spec: [{name: a}]}`, live: `{spec: {a: 1}}`, owned: `{f:spec: {f:a: {}}}`},
		"list removed":           {want: `{spec: {env: [{name: A, value: "1"}, {name: B, value: "2"}]}}`, live: `{spec: {}}`, owned: twoEnv},
		"elements whose key is defaulted": {want: `{spec: {ports: [{port: 53}, {port: 53, protocol: UDP}]}}`,
			live: `{spec: {ports: [{port: 53, protocol: TCP}, {port: 53, protocol: UDP}]}}`, owned: twoPorts, matches: true},
		"elements whose key is defaulted in another order": {want: `{spec: {ports: [{port: 53, protocol: UDP}, {port: 53}]}}`,
			live: `{spec: {ports: [{port: 53, protocol: TCP}, {port: 53, protocol: UDP}]}}`, owned: twoPorts, matches: true},
		"another key": {want: `{spec: {ports: [{port: 54}, {port: 53, protocol: UDP}]}}`,
			live: `{spec: {ports: [{port: 53, protocol: TCP}, {port: 53, protocol: UDP}]}}`, owned: twoPorts},
		"elements that are not maps": {want: `{spec: {ports: [53, 54]}}`,
			live: `{spec: {ports: [{port: 53, protocol: TCP}, {port: 53, protocol: UDP}]}}`, owned: twoPorts},
		"set in another order":              {want: `{spec: {tags: [x, w]}}`, live: `{spec: {tags: [z, w, x]}}`, owned: tags, matches: true},
		"element removed from a set":        {want: `{spec: {tags: [x, w]}}`, live: `{spec: {tags: [x]}}`, owned: tags},
		"another element in a set":          {want: `{spec: {tags: [x, z]}}`, live: `{spec: {tags: [x, w, z]}}`, owned: tags},
		"invalid key in the managed fields": {want: `{spec: {tags: [x]}}`, live: `{spec: {tags: [x]}}`, owned: `{f:spec: {f:tags: {'k:{': {}}}}`},
		"elements owned by index":           {want: `{spec: {tags: [x]}}`, live: `{spec: {tags: [x]}}`, owned: `{f:spec: {f:tags: {'i:0': {}}}}`},
	} {
		t.Run(name, test.run)
	}
}

func TestMatchesDesiredAtomicValues(t *testing.T) {
	const owned = `{f:spec: {f:rules: {}}}`
	for name, test := range map[string]comparison{
		"equal":                   {want: `{spec: {rules: [{a: 1}]}}`, live: `{spec: {rules: [{a: 1}]}}`, owned: owned, matches: true},
		"another value":           {want: `{spec: {rules: [{a: 1}]}}`, live: `{spec: {rules: [{a: 2}]}}`, owned: owned},
		"additional field":        {want: `{spec: {rules: [{a: 1}]}}`, live: `{spec: {rules: [{a: 1, b: 2}]}}`, owned: owned},
		"additional false":        {want: `{spec: {rules: [{a: 1}]}}`, live: `{spec: {rules: [{a: 1, b: false}]}}`, owned: owned},
		"additional element":      {want: `{spec: {rules: [{a: 1}]}}`, live: `{spec: {rules: [{a: 1}, {a: 1}]}}`, owned: owned},
		"another order":           {want: `{spec: {rules: [1, 2]}}`, live: `{spec: {rules: [2, 1]}}`, owned: owned},
		"additional empty values": {want: `{spec: {rules: [{a: 1}]}}`, live: `{spec: {rules: [{a: 1, b: {}, c: [], d: null}]}}`, owned: owned, matches: true},
		"missing empty values":    {want: `{spec: {rules: [{a: 1, b: {c: {}}, d: []}]}}`, live: `{spec: {rules: [{a: 1}]}}`, owned: owned, matches: true},
		"list desired for a map":  {want: `{spec: {rules: [1]}}`, live: `{spec: {rules: {a: 1}}}`, owned: owned},
		"map desired for a list":  {want: `{spec: {rules: {a: 1}}}`, live: `{spec: {rules: [1]}}`, owned: owned},
		"null":                    {want: `{spec: {rules: [null]}}`, live: `{spec: {rules: [1]}}`, owned: owned},
		"known defaults": {want: `{spec: {rules: [{backendRefs: [{name: x, port: 1}]}]}}`,
			live:  `{spec: {rules: [{matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{name: x, port: 1, group: "", kind: Service, weight: 1}]}]}}`,
			owned: owned, matches: true},
		"not the default":             {want: `{spec: {rules: [{name: x, port: 1}]}}`, live: `{spec: {rules: [{name: x, port: 1, weight: 2}]}}`, owned: owned},
		"default without its sibling": {want: `{spec: {rules: [{port: 1}]}}`, live: `{spec: {rules: [{port: 1, weight: 1}]}}`, owned: owned},
	} {
		t.Run(name, test.run)
	}
}

// Render encodes quantities of typed apply configurations as the API server does, because they are compared as strings. It does not convert
// other strings.
func TestRenderEncodesQuantities(t *testing.T) {
	limits := corev1ac.ResourceRequirements().WithLimits(corev1.ResourceList{"cpu": resource.MustParse("1000m"), "memory": resource.MustParse("0.5Gi")})
	container := corev1ac.Container().WithName("c").WithResources(limits).WithEnv(corev1ac.EnvVar().WithName("A").WithValue("1000m"))
	rendered, err := Render(Desired{{Config: corev1ac.Pod("x", "ns").WithSpec(corev1ac.PodSpec().WithContainers(container))}}, "test", newOwnerObject("owner", "uid"))
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, "Pod", `{spec: {containers: [{name: c, resources: {limits: {cpu: "1", memory: 512Mi}}, env: [{name: A, value: 1000m}]}]}}`)
	if diff := cmp.Diff(want.Object["spec"], rendered[0].Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// A whole number may be a float in the desired object. The API server stores an integer.
func TestMatchesDesiredWithFloat(t *testing.T) {
	want, live := object(t, "Widget", `{}`), object(t, "Widget", `{spec: {a: 1}}`)
	want.Object["spec"] = map[string]any{"a": 1.0}
	if !matchesDesired(want, live, parseFields(t, `{f:spec: {f:a: {}}}`)) {
		t.Error("got no match of a float and an integer of the same value")
	}
}

func TestMatchesDesiredNeedsManagedFields(t *testing.T) {
	want := object(t, "Widget", `{spec: {a: 1}}`)
	if matchesDesired(want, want.DeepCopy(), nil) {
		t.Error("an object without managed fields matches its desired state")
	}
}
