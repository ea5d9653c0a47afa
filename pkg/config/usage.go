package config

import (
	"fmt"
	"strings"
)

// SettingDoc describes the sources and the meaning of a setting.
type SettingDoc struct {
	// Flag has no dashes, and Key is the dotted key in the file. Either may be empty.
	Flag, Key string
	// Env are the environment variables in order of precedence.
	Env []string
	// Default is the value without any configuration and Program.Defaults; empty if there is none, or Help describes it.
	Default string
	Help    string
}

// SettingDocs returns the descriptions of all settings.
func SettingDocs(p Program) []SettingDoc {
	var docs []SettingDoc
	for _, s := range append(settings(&Config{}, p.Components), componentSections()...) {
		docs = append(docs, SettingDoc{Flag: s.flag, Key: s.key, Env: s.env, Default: s.defaultValue, Help: s.help})
	}
	return docs
}

// Usage returns one paragraph per setting: flag, environment variables, key in the file, help, default.
func Usage(p Program) string {
	var b strings.Builder
	for _, doc := range SettingDocs(p) {
		writeSetting(&b, doc)
	}
	return b.String()
}

func writeSetting(b *strings.Builder, doc SettingDoc) {
	var sources []string
	if doc.Flag != "" {
		sources = append(sources, "--"+doc.Flag)
	}
	for _, name := range doc.Env {
		sources = append(sources, "$"+name)
	}
	if doc.Key != "" {
		sources = append(sources, "file "+doc.Key)
	}
	fmt.Fprintf(b, "  %s\n        %s", strings.Join(sources, ", "), doc.Help)
	if doc.Default != "" {
		fmt.Fprintf(b, " (default %s)", doc.Default)
	}
	b.WriteString("\n")
}
