package screen

import (
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

func TestPaintOfStates(t *testing.T) {
	for state, want := range map[health.State]Paint{
		health.Healthy: Green, health.Idle: Dim, health.Failed: Red, health.Progressing: Yellow, health.Degraded: Yellow, health.Unknown: Yellow, health.Deleting: Yellow,
	} {
		if got := Of(state); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}

func TestMore(t *testing.T) {
	whole := health.Verdict{State: health.Failed, Reason: "NoImage", Message: "it cannot be pulled"}
	for name, c := range map[string]struct {
		width   int
		verdict health.Verdict
		want    string
	}{
		"a wide screen":              {120, whole, "it cannot be pulled"},
		"a pipe":                     {0, whole, "it cannot be pulled"},
		"a narrow screen":            {80, whole, "NoImage: it cannot be pulled"},
		"a narrow one, no reason":    {80, health.Verdict{State: health.Failed, Message: "it cannot be pulled"}, "it cannot be pulled"},
		"a narrow one, no message":   {80, health.Verdict{State: health.Failed, Reason: "NoImage"}, "NoImage"},
		"a wide one, no message":     {120, health.Verdict{State: health.Failed, Reason: "NoImage"}, ""},
		"well":                       {80, health.Verdict{State: health.Healthy, Reason: "Fine", Message: "all is well"}, ""},
		"at rest":                    {80, health.Verdict{State: health.Idle, Reason: "Suspended", Message: "it waits"}, ""},
		"as wide as reasons need it": {100, whole, "it cannot be pulled"},
		"one column less":            {99, whole, "NoImage: it cannot be pulled"},
	} {
		if got := (Style{Width: c.width}).More(c.verdict); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestNotes(t *testing.T) {
	for name, c := range map[string]struct {
		style Style
		want  string
	}{
		"a pipe":   {Style{}, "Note: not allowed to read: secrets\nNote: two\n"},
		"narrow":   {Style{Width: 20}, "Note: not allowed t…\nNote: two\n"},
		"coloured": {Style{Color: true}, "\x1b[33mNote: not allowed to read: secrets\x1b[0m\n\x1b[33mNote: two\x1b[0m\n"},
	} {
		if got := c.style.Notes([]string{"not allowed to read: secrets", "two"}); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := (Style{}).Notes(nil); got != "" {
		t.Errorf("no notes: %q", got)
	}
}

func TestRoom(t *testing.T) {
	for _, c := range []struct{ width, used, want int }{{0, 5, -1}, {10, 4, 6}, {10, 10, 0}, {10, 12, 0}} {
		if got := (Style{Width: c.width}).Room(c.used); got != c.want {
			t.Errorf("%d of %d: %d, want %d", c.used, c.width, got, c.want)
		}
	}
}
