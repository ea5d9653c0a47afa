package modelmesh

import (
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// Listeners are called when the findings of a namespace change.
func TestFindings(t *testing.T) {
	lacks := func(name string) []reference.Missing {
		return []reference.Missing{{Reference: reference.Reference{Kind: reference.Secret, Name: name}}}
	}
	var r Findings[[]reference.Missing]
	r.Set("early", map[string][]reference.Missing{"m": lacks("s")}) // before the controller of models is started
	changes := 0
	r.Subscribe(t.Context(), func(string) { changes++ })
	for _, step := range []struct {
		missing map[string][]reference.Missing
		want    int
	}{
		{nil, 1}, // the namespace is set for the first time
		{nil, 0},
		{map[string][]reference.Missing{"a": lacks("s"), "b": lacks("s")}, 1},
		{map[string][]reference.Missing{"a": lacks("s"), "b": lacks("s")}, 0},
		{map[string][]reference.Missing{"a": lacks("s"), "b": lacks("other")}, 1},
		{map[string][]reference.Missing{"b": lacks("other")}, 1},
		{nil, 1},
	} {
		changes = 0
		if r.Set("ns", step.missing); changes != step.want {
			t.Errorf("%v: called %d times, want %d", step.missing, changes, step.want)
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
