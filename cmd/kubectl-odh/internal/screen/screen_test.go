package screen

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestPaint(t *testing.T) {
	colour := Style{Color: true}
	for name, c := range map[string]struct {
		style Style
		paint Paint
		text  string
		want  string
	}{
		"colour":    {colour, Red, "no", "\x1b[31mno\x1b[0m"},
		"weight":    {colour, Bold, "no", "\x1b[1mno\x1b[0m"},
		"plain":     {colour, Plain, "no", "no"},
		"nothing":   {colour, Red, "", ""},
		"no colour": {Style{}, Red, "no", "no"},
	} {
		if got := c.style.Paint(c.paint, c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestClip(t *testing.T) {
	for name, c := range map[string]struct {
		ascii bool
		text  string
		limit int
		want  string
	}{
		"fits":               {false, "abc", 3, "abc"},
		"cut":                {false, "abcd", 3, "ab…"},
		"cut in ASCII":       {true, "abcdef", 5, "ab..."},
		"no bound":           {false, "abcd", -1, "abcd"},
		"no room":            {false, "abcd", 0, ""},
		"room for the mark":  {false, "abcd", 1, "…"},
		"room for a bit":     {true, "abcd", 2, ".."},
		"wide characters":    {false, "日本語", 5, "日本…"},
		"half a character":   {false, "日本語", 4, "日…"},
		"accents":            {false, "e\u0301e\u0301", 2, "e\u0301e\u0301"},
		"lines":              {false, "a\n\tb  c", 9, "a b c"},
		"no blank at a cut":  {false, "ab cd", 4, "ab…"},
		"tricks of terminal": {false, "a\x1b[31mb\u202ec", 20, "a[31mbc"},
		"broken UTF-8":       {false, "a\xffb", 9, "ab"},
	} {
		if got := (Style{ASCII: c.ascii}).Clip(c.text, c.limit); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestClipNeverExceeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		style := Style{ASCII: rapid.Bool().Draw(t, "ascii")}
		text, limit := rapid.String().Draw(t, "text"), rapid.IntRange(0, 30).Draw(t, "limit")
		got := style.Clip(text, limit)
		if Columns(got) > limit || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\t\x1b") {
			t.Fatalf("%q becomes %q, %d columns of %d", text, got, Columns(got), limit)
		}
		if full := OneLine(text); Columns(full) <= limit && got != full {
			t.Fatalf("%q fits and became %q", full, got)
		}
	})
}

func table() Table {
	return Table{
		Heading: []string{"NAME", "READY", "MESSAGE"},
		Rows: [][]Cell{
			{{Text: "a-long-name"}, {Text: "True", Paint: Green}, {Text: "all is well"}},
			{{Text: "b"}, {Text: ""}, {Text: "the image\ncannot be pulled", Paint: Red}},
			{{Text: "c"}, {Text: "False", Paint: Red}},
		},
	}
}

func TestTable(t *testing.T) {
	for name, c := range map[string]struct {
		style Style
		want  string
	}{
		"no bound": {Style{}, "" +
			"NAME         READY  MESSAGE\n" +
			"a-long-name  True   all is well\n" +
			"b                   the image cannot be pulled\n" +
			"c            False\n"},
		"narrow": {Style{Width: 30}, "" +
			"NAME         READY  MESSAGE\n" +
			"a-long-name  True   all is we…\n" +
			"b                   the image…\n" +
			"c            False\n"},
		"ASCII": {Style{Width: 30, ASCII: true}, "" +
			"NAME         READY  MESSAGE\n" +
			"a-long-name  True   all is...\n" +
			"b                   the ima...\n" +
			"c            False\n"},
		"no room for the last": {Style{Width: 18}, "" +
			"NAME         READY\n" +
			"a-long-name  True\n" +
			"b\n" +
			"c            False\n"},
		"colour": {Style{Color: true}, "" +
			"\x1b[1mNAME\x1b[0m         \x1b[1mREADY\x1b[0m  \x1b[1mMESSAGE\x1b[0m\n" +
			"a-long-name  \x1b[32mTrue\x1b[0m   all is well\n" +
			"b                   \x1b[31mthe image cannot be pulled\x1b[0m\n" +
			"c            \x1b[31mFalse\x1b[0m\n"},
	} {
		if got := table().Render(c.style); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
	bare := Table{Rows: [][]Cell{{{Text: "a"}, {Text: "b"}}}}
	if got := bare.Render(Style{}); got != "a  b\n" {
		t.Errorf("without a heading: %q", got)
	}
	led := Table{Rows: [][]Cell{{{Lead: "|  `- ", Text: "long"}, {Text: "b"}}, {{Text: "a"}, {Text: "c"}}}}
	if got := led.Render(Style{}); got != "|  `- long  b\na           c\n" {
		t.Errorf("with guides: %q", got)
	}
	if got := led.Render(Style{Width: 8}); got != "|  `- l…\na\n" {
		t.Errorf("with guides, narrow: %q", got)
	}
	if got := (Table{}).Render(Style{}); got != "" {
		t.Errorf("nothing: %q", got)
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		style := Style{Width: rapid.IntRange(1, 60).Draw(t, "width")}
		cells := rapid.SliceOfN(rapid.String(), 1, 4)
		var made Table
		for _, texts := range rapid.SliceOfN(cells, 1, 5).Draw(t, "rows") {
			var row []Cell
			for _, text := range texts {
				row = append(row, Cell{Text: text})
			}
			made.Rows = append(made.Rows, row)
		}
		for line := range strings.Lines(made.Render(style)) {
			line = strings.TrimSuffix(line, "\n")
			if Columns(line) > style.Width || strings.TrimRight(line, " ") != line {
				t.Fatalf("line %q, %d columns of %d", line, Columns(line), style.Width)
			}
		}
	})
}
