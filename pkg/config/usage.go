package config

import (
	"fmt"
	"strings"
)

// Row is one setting as people see it: where its value may come from, and what it means.
type Row struct {
	// Flag without its dashes, and Key in the file with dots; empty where the setting has none.
	Flag, Key string
	// Env are the variables, of which the first that is not empty counts.
	Env []string
	// Default is the value without any configuration; empty where there is none, or Help describes it.
	Default string
	Help    string
}

// Rows are all settings.
func Rows(p Program) []Row {
	var rows []Row
	for _, s := range append(settings(&Config{}, p.Components), sections()...) {
		rows = append(rows, Row{Flag: s.flag, Key: s.key, Env: s.env, Default: s.fallback, Help: s.help})
	}
	return rows
}

// Usage returns one paragraph per setting: flag, environment variables, key in the file, default, meaning.
func Usage(p Program) string {
	var b strings.Builder
	for _, row := range Rows(p) {
		writeRow(&b, row)
	}
	return b.String()
}

func writeRow(b *strings.Builder, row Row) {
	var places []string
	if row.Flag != "" {
		places = append(places, "--"+row.Flag)
	}
	for _, name := range row.Env {
		places = append(places, "$"+name)
	}
	if row.Key != "" {
		places = append(places, "file "+row.Key)
	}
	fmt.Fprintf(b, "  %s\n        %s", strings.Join(places, ", "), row.Help)
	if row.Default != "" {
		fmt.Fprintf(b, " (default %s)", row.Default)
	}
	b.WriteString("\n")
}
