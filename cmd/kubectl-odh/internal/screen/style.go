package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
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

// Paints, as parameters of the escape sequence SGR. They are those that people can read on light and on dark ground.
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

// Ellipsis marks where a text was cut.
func (s Style) Ellipsis() string {
	if s.ASCII {
		return "..."
	}
	return "…"
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
	mark := s.Ellipsis()
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
