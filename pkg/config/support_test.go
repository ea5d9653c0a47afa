package config

import (
	"fmt"
	"strings"
	"time"
)

// nested returns a dotted key with its value as YAML.
func nested(key, value string) string {
	var b strings.Builder
	parts := strings.Split(key, ".")
	for i, part := range parts {
		fmt.Fprintf(&b, "%s%s:", strings.Repeat("  ", i), part)
		if i < len(parts)-1 {
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, " %s\n", scalar(value))
	return b.String()
}

// scalar quotes strings, except booleans and numbers.
func scalar(value string) string {
	switch value {
	case "true", "false", "1", "65535":
		return value
	}
	return fmt.Sprintf("%q", value)
}

func stringOf(v any) string { return fmt.Sprint(v) }

// canonical formats durations as Go prints them.
func canonical(text string) string {
	if d, err := time.ParseDuration(text); err == nil && text != "0" {
		return d.String()
	}
	return text
}
