package screen

import (
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// Of is the paint of a state of health.
func Of(state health.State) Paint {
	switch state {
	case health.Healthy:
		return Green
	case health.Failed:
		return Red
	case health.Idle:
		return Dim
	}
	return Yellow
}

// StateCell is the cell of a state, which marks a resource that is paused.
func StateCell(state health.State, paused bool) Cell {
	text := string(state)
	if paused {
		text += " (paused)"
	}
	return Cell{Text: text, Paint: Of(state)}
}

// roomy is the width from which on a line has room for reasons.
const roomy = 100

// Narrow tells that a line has no room for reasons, which then stand before the messages.
func (s Style) Narrow() bool { return !s.Wide && s.Width > 0 && s.Width < roomy }

// More is what a line of its own says about what needs attention; empty about what is well.
func (s Style) More(v health.Verdict) string {
	switch {
	case v.State.OK(), s.Wide:
		return ""
	case !s.Narrow() || v.Reason == "":
		return v.Message
	case v.Message == "":
		return v.Reason
	}
	return v.Reason + ": " + v.Message
}

// WithMore draws a table with a heading whose rows are followed by what More says of them. Of gives the guide that stands before that,
// and the verdict, of the row with an index.
func (s Style) WithMore(t Table, of func(row int) (guide string, v health.Verdict)) string {
	lines := slices.Collect(strings.Lines(t.Render(s)))
	var b strings.Builder
	b.WriteString(lines[0])
	for i, line := range lines[1:] {
		b.WriteString(line)
		guide, verdict := of(i)
		if more := s.More(verdict); more != "" {
			b.WriteString(guide + s.Paint(Dim, s.Clip(more, s.Room(Columns(guide)))) + "\n")
		}
	}
	return b.String()
}
