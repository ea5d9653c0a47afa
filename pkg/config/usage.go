package config

import (
	"fmt"
	"strings"
)

// Usage returns one paragraph per setting: flag, environment variables, key in the file, default, meaning.
func Usage(p Program) string {
	var b strings.Builder
	var scratch Config
	for _, row := range settings(&scratch) {
		writeRow(&b, row)
	}
	writeRow(&b, setting{flag: "components", key: "components", fallback: "*",
		help: "what runs: names, \"*\" for the default set, a leading - switches off"})
	for _, name := range p.Components {
		env := []string{"ENABLE_" + strings.ToUpper(name)}
		if legacy := switchedOnBy[name]; legacy != "" {
			env = append(env, legacy)
		}
		writeRow(&b, setting{flag: "enable-" + name, env: env, fallback: fmt.Sprint(DefaultOn(name)), help: "run the component " + name})
	}
	return b.String()
}

func writeRow(b *strings.Builder, row setting) {
	var places []string
	if row.flag != "" {
		places = append(places, "--"+row.flag)
	}
	for _, name := range row.env {
		places = append(places, "$"+name)
	}
	if row.key != "" {
		places = append(places, "file "+row.key)
	}
	fmt.Fprintf(b, "  %s\n        %s", strings.Join(places, ", "), row.help)
	if row.fallback != "" {
		fmt.Fprintf(b, " (default %s)", row.fallback)
	}
	b.WriteString("\n")
}
