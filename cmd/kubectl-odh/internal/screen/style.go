package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"
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

// Clip folds white space and control characters, which could play tricks on a terminal, and cuts a text to a number of columns. A
// negative limit means no bound.
func (s Style) Clip(text string, limit int) string {
	text = OneLine(text)
	if limit < 0 || Columns(text) <= limit {
		return text
	}
	mark := s.Ellipsis()
	if limit <= Columns(mark) {
		return mark[:min(limit*len(mark)/Columns(mark), len(mark))]
	}
	end, columns := 0, 0
	for i, r := range text {
		if columns+width(r) > limit-Columns(mark) {
			break
		}
		columns += width(r)
		end = i + utf8.RuneLen(r)
	}
	return strings.TrimRight(text[:end], " ") + mark
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
func Columns(text string) int {
	n := 0
	for _, r := range text {
		n += width(r)
	}
	return n
}

// wide are the blocks whose characters take two columns: East Asian scripts and pictures.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{0x1100, 0x115f, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1}},
	R32: []unicode.Range32{{0x1f300, 0x1f64f, 1}, {0x1f900, 0x1f9ff, 1}, {0x20000, 0x3fffd, 1}},
}

func width(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}
