package screen

import "strings"

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
