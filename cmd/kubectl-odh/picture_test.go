package main

import (
	"fmt"
	"html"
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// Sizes of the picture in pixels.
const (
	charWidth  = 7.22
	lineHeight = 17
	margin     = 16
	titleBar   = 30
)

// TestPictureOfStatus compares the picture in README.md with the output of `kubectl odh status`. Run it with -update to draw the picture again.
func TestPictureOfStatus(t *testing.T) {
	got := run(t, fullCluster(t), "status")
	framework.GoldenText(t, "../../docs/images/status.svg", picture("kubectl odh status", got.stdout))
}

// picture draws a terminal with a command and its output as an SVG. Columns are aligned in every monospace font: blanks do not collapse, and each
// line has a fixed width.
func picture(command, output string) string {
	lines := append([]string{"$ " + command}, strings.Split(strings.TrimRight(output, "\n"), "\n")...)
	columns := 0
	for _, line := range lines {
		columns = max(columns, len([]rune(line)))
	}
	width, height := int(float64(columns)*charWidth)+2*margin, len(lines)*lineHeight+titleBar+margin
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img">
<title>Output of %[3]s</title>
<rect width="%[1]d" height="%[2]d" rx="8" fill="#161b22"/>
<g fill="#30363d"><circle cx="18" cy="15" r="5"/><circle cx="36" cy="15" r="5"/><circle cx="54" cy="15" r="5"/></g>
<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="12">
`, width, height, html.EscapeString(command))
	for i, line := range lines {
		if line != "" {
			fmt.Fprintf(&svg, "<text x=\"%d\" y=\"%d\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\" fill=\"%s\">%s</text>\n",
				margin, titleBar+lineHeight*(i+1)-5, float64(len([]rune(line)))*charWidth, colorOf(line), strings.ReplaceAll(html.EscapeString(line), " ", "\u00a0"))
		}
	}
	return svg.String() + "</g>\n</svg>\n"
}

// colorOf returns the color of a line, by the state or heading at its beginning.
func colorOf(line string) string {
	first, _, _ := strings.Cut(line, " ")
	switch {
	case first == "$":
		return "#ffffff"
	case strings.HasPrefix(line, "MANAGER"), first == "COMPONENT", first == "STATE":
		return "#79c0ff"
	case first == "Failed":
		return "#ff7b72"
	case first == "Progressing":
		return "#e3b341"
	case first == "Healthy":
		return "#7ee787"
	default:
		return "#c9d1d9"
	}
}
