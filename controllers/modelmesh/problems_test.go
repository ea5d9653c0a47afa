package modelmesh

import (
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

// Listeners are called when the problems of a namespace change.
func TestProblems(t *testing.T) {
	missingSecret := func(name string) []reference.Missing {
		return []reference.Missing{{Reference: reference.Reference{Kind: reference.Secret, Name: name}}}
	}
	var problems Problems[[]reference.Missing]
	problems.Set("early", map[string][]reference.Missing{"m": missingSecret("s")}) // before the models controller subscribes
	changes := 0
	problems.Subscribe(t.Context(), func(string) { changes++ })
	for _, step := range []struct {
		missing map[string][]reference.Missing
		want    int
	}{
		{nil, 1}, // the namespace is set for the first time
		{nil, 0},
		{map[string][]reference.Missing{"a": missingSecret("s"), "b": missingSecret("s")}, 1},
		{map[string][]reference.Missing{"a": missingSecret("s"), "b": missingSecret("s")}, 0},
		{map[string][]reference.Missing{"a": missingSecret("s"), "b": missingSecret("other")}, 1},
		{map[string][]reference.Missing{"b": missingSecret("other")}, 1},
		{nil, 1},
	} {
		changes = 0
		if problems.Set("ns", step.missing); changes != step.want {
			t.Errorf("%v: called %d times, want %d", step.missing, changes, step.want)
		}
		if got, known := problems.Get("ns", "b"); !known || len(got) != len(step.missing["b"]) {
			t.Errorf("%v: Get(ns, b) = %v, %t", step.missing, got, known)
		}
	}
	if got, known := problems.Get("early", "m"); !known || len(got) != 1 {
		t.Errorf("Get(early, m) = %v, %t, want the problem set before Subscribe", got, known)
	}
	if got, known := problems.Get("never", "m"); known || len(got) > 0 {
		t.Errorf("Get(never, m) = %v, %t, want no problems", got, known)
	}
}
