// Package screen makes text for terminals: colours where they are wanted, tables, and lines that end where the terminal does.
package screen

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// Style says how text looks.
type Style struct {
	// Color allows escape sequences.
	Color bool
	// ASCII allows no other characters in what is drawn; texts from the cluster stay as they are.
	ASCII bool
	// Wide shows every column, and messages in them.
	Wide bool
	// Width of a line in columns; 0 for no bound.
	Width int
}

// Paint is a colour or a weight of text.
type Paint string

// Paints, as parameters of the escape sequence SGR. They are readable on light and on dark backgrounds.
const (
	Plain  Paint = ""
	Bold   Paint = "1"
	Dim    Paint = "2"
	Red    Paint = "31"
	Green  Paint = "32"
	Yellow Paint = "33"
	Cyan   Paint = "36"
)

// Paint colours a text where colours are allowed.
func (s Style) Paint(p Paint, text string) string {
	if !s.Color || p == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(p) + "m" + text + "\x1b[0m"
}

// widths are the columns of characters, in every locale the same.
var widths = runewidth.Condition{StrictEmojiNeutral: true}

// Clip folds white space and control characters, which could play tricks on a terminal, and cuts a text to a number of columns. A
// negative limit means no bound.
func (s Style) Clip(text string, limit int) string {
	text = OneLine(text)
	if limit < 0 || Columns(text) <= limit {
		return text
	}
	mark := "…"
	if s.ASCII {
		mark = "..."
	}
	if limit <= Columns(mark) {
		return widths.Truncate(mark, limit, "")
	}
	return strings.TrimRight(widths.Truncate(text, limit-Columns(mark), ""), " ") + mark
}

// OneLine folds white space and drops control characters.
func OneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r == utf8.RuneError, unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// Columns is how many columns a text without escape sequences takes.
func Columns(text string) int { return widths.StringWidth(text) }

// Notes are lines about what could not be found out, for the end of a text.
func (s Style) Notes(notes []string) string {
	text := ""
	for _, note := range notes {
		text += s.Paint(Yellow, s.Clip("Note: "+note, s.Room(0))) + "\n"
	}
	return text
}

// Room is how many columns of a line are left, for Clip: negative when lines have no bound.
func (s Style) Room(used int) int {
	if s.Width == 0 {
		return -1
	}
	return max(s.Width-used, 0)
}

// gap stands between columns.
const gap = 2

// Cell is a piece of a table.
type Cell struct {
	Text  string
	Paint Paint
	// Lead stands before the text as it is; it is meant for guides.
	Lead string
}

// columns that the whole cell takes.
func (c Cell) columns() int { return Columns(c.Lead) + Columns(OneLine(c.Text)) }

// Table is a heading and rows of cells. The last column takes what room is left, and is cut there.
type Table struct {
	Heading []string
	Rows    [][]Cell
}

// Render aligns the columns. Lines end without blanks.
func (t Table) Render(s Style) string {
	rows := t.Rows
	if len(t.Heading) > 0 {
		heading := make([]Cell, 0, len(t.Heading))
		for _, text := range t.Heading {
			heading = append(heading, Cell{Text: text, Paint: Bold})
		}
		rows = append([][]Cell{heading}, rows...)
	}
	widths := columnWidths(rows)
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(s.line(row, widths))
		b.WriteByte('\n')
	}
	return b.String()
}

// columnWidths are those of the widest cells, for all columns but the last.
func columnWidths(rows [][]Cell) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cell.columns())
		}
	}
	return widths
}

// line joins the cells of a row; what follows the end of the terminal is cut.
func (s Style) line(row []Cell, widths []int) string {
	var b strings.Builder
	used, pending := 0, 0
	for i, cell := range row {
		lead := cell.Lead
		room := s.Room(used + pending + Columns(lead))
		text := s.Clip(cell.Text, room)
		if text == "" || room == 0 {
			pending += widths[i] + gap
			continue
		}
		b.WriteString(strings.Repeat(" ", pending))
		b.WriteString(lead + s.Paint(cell.Paint, text))
		used += pending + Columns(lead) + Columns(text)
		pending = widths[i] - Columns(lead) - Columns(text) + gap
	}
	return b.String()
}

var paints = map[health.State]Paint{health.Healthy: Green, health.Failed: Red, health.Idle: Dim}

// Of is the paint of a state of health.
func Of(state health.State) Paint { return cmp.Or(paints[state], Yellow) }

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

// Line is what a listing says of a resource.
type Line struct {
	// Guide stands before the name, and Below before the message.
	Guide, Below               string
	Name, Namespace, Component string
	// Since is when its state began, as far as it is known.
	Since time.Time
	health.Verdict
}

// Listing draws a table of resources, and below each that needs attention what is wrong with it. A narrow screen has no column REASON, and
// only a wide style has the columns COMPONENT and MESSAGE.
func (s Style) Listing(now time.Time, lines []Line, columns ...string) string {
	columns = slices.DeleteFunc(columns, func(c string) bool {
		return c == "REASON" && s.Narrow() || (c == "COMPONENT" || c == "MESSAGE") && !s.Wide
	})
	table := Table{Heading: columns}
	for _, l := range lines {
		state := string(l.State)
		if l.Paused {
			state += " (paused)"
		}
		cells := map[string]Cell{
			"STATE": {Text: state, Paint: Of(l.State)}, "AGE": {Text: Age(l.Since, now)}, "NAMESPACE": {Text: l.Namespace},
			"RESOURCE": {Text: l.Name, Lead: l.Guide}, "REASON": {Text: l.Reason}, "COMPONENT": {Text: l.Component}, "MESSAGE": {Text: l.Message},
		}
		var row []Cell
		for _, column := range columns {
			row = append(row, cells[column])
		}
		table.Rows = append(table.Rows, row)
	}
	rows := slices.Collect(strings.Lines(table.Render(s)))
	var b strings.Builder
	b.WriteString(rows[0])
	for i, l := range lines {
		b.WriteString(rows[i+1])
		if more := s.More(l.Verdict); more != "" {
			b.WriteString(l.Below + s.Paint(Dim, s.Clip(more, s.Room(Columns(l.Below)))) + "\n")
		}
	}
	return b.String()
}

// Age of what began at a time; "" where that is not known.
func Age(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(since), 0))
}
