package modelmesh

import (
	"slices"
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// The subscriber is called for Predictors with changed references only.
func TestMissingReferences(t *testing.T) {
	lacks := func(name string) []reference.Missing {
		return []reference.Missing{{Reference: reference.Reference{Kind: reference.Secret, Name: name}}}
	}
	var r MissingReferences
	r.Set("early", map[string][]reference.Missing{"m": lacks("s")}) // before the controller of models is started
	var called []string
	r.Subscribe(func(namespace, name string) { called = append(called, namespace+"/"+name) })
	for _, step := range []struct {
		missing map[string][]reference.Missing
		want    []string
	}{
		{nil, []string{"ns/"}}, // the namespace is set for the first time
		{nil, nil},
		{map[string][]reference.Missing{"a": lacks("s"), "b": lacks("s")}, []string{"ns/a", "ns/b"}},
		{map[string][]reference.Missing{"a": lacks("s"), "b": lacks("s")}, nil},
		{map[string][]reference.Missing{"a": lacks("s"), "b": lacks("other")}, []string{"ns/b"}},
		{map[string][]reference.Missing{"b": lacks("other")}, []string{"ns/a"}},
		{nil, []string{"ns/b"}},
	} {
		called = nil
		if r.Set("ns", step.missing); !slices.Equal(called, step.want) {
			t.Errorf("%v: called for %q, want %q", step.missing, called, step.want)
		}
		if got, known := r.Get("ns", "b"); !known || len(got) != len(step.missing["b"]) {
			t.Errorf("b lacks %v", got)
		}
	}
	if got, known := r.Get("early", "m"); !known || len(got) != 1 {
		t.Errorf("m lacks %v", got)
	}
	if got, known := r.Get("never", "m"); known || len(got) > 0 {
		t.Errorf("unexpected references of a namespace that was never read: %v", got)
	}
}
