package appwrapper

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// storedAppWrapper returns an AppWrapper with two components and the creator labels.
func storedAppWrapper(t *testing.T) *v1beta2.AppWrapper {
	t.Helper()
	wrapper := newAppWrapper(t, component(deployment, "{path: template.spec.template, replicas: 2}"), component(pod))
	wrapper.Labels = map[string]string{v1beta2.LabelUser: "alice_example.org", v1beta2.LabelUserID: "u_1", "example.com/label": "x"}
	return wrapper
}

// [appwrapper-31] Changes of mutable fields are allowed.
func TestAllowedUpdates(t *testing.T) {
	for name, change := range map[string]func(*v1beta2.AppWrapper){
		"no change": func(*v1beta2.AppWrapper) {},
		"suspend":   func(w *v1beta2.AppWrapper) { w.Spec.Suspend = true },
		"podSetInfos": func(w *v1beta2.AppWrapper) {
			w.Spec.Components[0].PodSetInfos = []v1beta2.AppWrapperPodSetInfo{{Labels: map[string]string{"a": "b"}}}
		},
		"annotations": func(w *v1beta2.AppWrapper) {
			w.Annotations = map[string]string{"a": "b"}
			w.Spec.Components[0].Annotations = map[string]string{"a": "b"}
			w.Spec.Components[0].PodSets[0].Annotations = map[string]string{"a": "b"}
		},
		"other labels": func(w *v1beta2.AppWrapper) { w.Labels["example.com/label"] = "y" },
		"template formatted differently": func(w *v1beta2.AppWrapper) {
			w.Spec.Components[1].Template.Raw = reformat(t, w.Spec.Components[1].Template.Raw)
		},
		"finalizer added": func(w *v1beta2.AppWrapper) { w.Finalizers = []string{v1beta2.Finalizer} },
	} {
		t.Run(name, func(t *testing.T) {
			updated := storedAppWrapper(t)
			change(updated)
			if errs := immutableErrors(storedAppWrapper(t), updated); len(errs) > 0 {
				t.Errorf("got errors %v, want none", errs)
			}
		})
	}
	one, absent := storedAppWrapper(t), storedAppWrapper(t)
	one.Spec.Components[0].PodSets[0].Replicas, absent.Spec.Components[0].PodSets[0].Replicas = new(int32(1)), nil
	if errs := immutableErrors(one, absent); len(errs) > 0 {
		t.Errorf("replicas unset instead of 1: got errors %v, want none", errs)
	}
}

// reformat encodes an object with sorted keys and indentation.
func reformat(t *testing.T, raw []byte) []byte {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(object, "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// [appwrapper-30] [appwrapper-32] Changes of immutable fields are rejected, with the paths that clients expect.
func TestImmutableFieldsAreRejected(t *testing.T) {
	sets := func(w *v1beta2.AppWrapper) *v1beta2.AppWrapperPodSet { return &w.Spec.Components[0].PodSets[0] }
	for name, tc := range map[string]struct {
		change func(*v1beta2.AppWrapper)
		want   []string
	}{
		"templates swapped": {func(w *v1beta2.AppWrapper) {
			c := w.Spec.Components
			c[0].Template, c[1].Template = c[1].Template, c[0].Template
		}, []string{"spec.components[0].template.raw", "spec.components[1].template.raw"}},
		"component appended": {func(w *v1beta2.AppWrapper) {
			w.Spec.Components = append(w.Spec.Components, w.Spec.Components[1])
			w.Labels[v1beta2.LabelUser] = "bad"
		}, []string{"spec.components"}}, // labels are not compared after this error
		"component removed": {func(w *v1beta2.AppWrapper) { w.Spec.Components = w.Spec.Components[:1] }, []string{"spec.components"}},
		"pod set duplicated": {func(w *v1beta2.AppWrapper) {
			w.Spec.Components[0].PodSets = append(w.Spec.Components[0].PodSets, *sets(w))
		}, []string{"spec.components[0].podsets"}},
		"path changed":                     {func(w *v1beta2.AppWrapper) { sets(w).Path = "template" }, []string{"spec.components[0].podsets[0].path"}},
		"replicas changed":                 {func(w *v1beta2.AppWrapper) { sets(w).Replicas = new(int32(3)) }, []string{"spec.components[0].podsets[0].replicas"}},
		"user changed":                     {func(w *v1beta2.AppWrapper) { w.Labels[v1beta2.LabelUser] = "bad" }, []string{"metadata.labels[workload.codeflare.dev/user]"}},
		"user ID removed":                  {func(w *v1beta2.AppWrapper) { delete(w.Labels, v1beta2.LabelUserID) }, []string{"metadata.labels[workload.codeflare.dev/userid]"}},
		"managedBy set":                    {func(w *v1beta2.AppWrapper) { w.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue") }, []string{"spec.managedBy"}},
		"managedBy set to an empty string": {func(w *v1beta2.AppWrapper) { w.Spec.ManagedBy = new("") }, []string{"spec.managedBy"}},
		"template changed": {func(w *v1beta2.AppWrapper) {
			w.Spec.Components[1].Template = runtime.RawExtension{Raw: []byte(strings.Replace(string(w.Spec.Components[1].Template.Raw), `"a"`, `"b"`, 1))}
		}, []string{"spec.components[1].template.raw"}},
	} {
		t.Run(name, func(t *testing.T) {
			updated := storedAppWrapper(t)
			tc.change(updated)
			var got []string
			for _, err := range immutableErrors(storedAppWrapper(t), updated) {
				if err.Type != "FieldValueForbidden" || !strings.HasPrefix(err.Detail, immutableMessage+": leave it as it is") {
					t.Errorf("got error %v, want FieldValueForbidden with the fix", err)
				}
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// [D18] Templates are compared semantically.
func TestEqualTemplates(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		want bool
	}{
		"equal bytes":                      {`{"a":1}`, `{"a":1}`, true},
		"equal bytes, invalid JSON":        {`{`, `{`, true},
		"order of fields and white space":  {`{"a":1,"b":[1,2]}`, `{ "b": [1, 2], "a": 1 }`, true},
		"null fields":                      {`{"metadata":{"creationTimestamp":null,"name":"a"}}`, `{"metadata":{"name":"a"}}`, true},
		"null fields in lists":             {`{"l":[{"a":null}]}`, `{"l":[{}]}`, true},
		"notation of numbers":              {`{"a":1,"b":10}`, `{"a":1.0,"b":1e1}`, true},
		"null item of a list":              {`{"l":[null]}`, `{"l":[]}`, false},
		"empty and absent map":             {`{"m":{}}`, `{}`, false},
		"different value":                  {`{"a":1}`, `{"a":2}`, false},
		"different type":                   {`{"a":1}`, `{"a":"1"}`, false},
		"order of a list":                  {`{"l":[1,2]}`, `{"l":[2,1]}`, false},
		"case of a key":                    {`{"kind":"Pod"}`, `{"Kind":"Pod"}`, false},
		"fraction":                         {`{"a":0.5}`, `{"a":0}`, false},
		"large numbers that differ by one": {`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		"second is invalid JSON":           {`{"a":1}`, `{`, false},
		"first is invalid JSON":            {`{`, `{"a":1}`, false},
	} {
		if got := equalTemplates([]byte(tc.a), []byte(tc.b)); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

// equalTemplates is reflexive and symmetric.
func FuzzEqualTemplates(f *testing.F) {
	f.Add(`{"a":[1,2.5,null,{"b":null}]}`, `{"a":1}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if equalTemplates([]byte(a), []byte(b)) != equalTemplates([]byte(b), []byte(a)) {
			t.Errorf("equalTemplates is not symmetric for %q and %q", a, b)
		}
		if !equalTemplates([]byte(a), []byte(a)) {
			t.Errorf("equalTemplates is not reflexive for %q", a)
		}
	})
}
