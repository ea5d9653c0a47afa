package modelsource

import (
	"context"
	"strings"
	"testing"
)

// named is a source of which only the names matter.
type named struct {
	Source
	id string
}

func (n named) ID() string          { return n.id }
func (n named) DisplayName() string { return "source " + n.id }

func TestIDsOfSources(t *testing.T) {
	for ids, want := range map[string]string{
		"":           `is not empty`,
		"a/b":        `has no slash`,
		"ksp":        `that of Predictors`,
		"isvc":       `that of InferenceServices`,
		"mine,mine":  `that of source mine`,
		"mine,yours": "",
	} {
		var sources []Source
		for id := range strings.SplitSeq(ids, ",") {
			sources = append(sources, named{id: id})
		}
		err := Validate(sources)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", ids, err, want)
		}
	}
	if err := Validate(nil); err != nil {
		t.Error(err)
	}
}

func TestBackendsThatEndWithoutAReason(t *testing.T) {
	for name, made := range map[string]func(*fixture) Source{
		"watched":  func(f *fixture) Source { return NewRefreshAndWatch(f.options(), mute{f.backend}) },
		"streamed": func(f *fixture) Source { return NewStreamed(f.options(), mute{f.backend}) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = made(f).Start(ctx)
			}()
			eventually(t, "the end was noticed", func() bool { return f.logged("it ended without an error") })
			cancel()
			<-ended
		})
	}
}
