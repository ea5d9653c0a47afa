package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The page of settings contains every flag, variable and key of --help, although its generator has its own list of components.
func TestConfigurationPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^  (--|\$|file ).*$`).FindAllString(usage(process{specs: componentSpecs}), -1)
	if len(names) < 60 {
		t.Fatalf("found %d settings in --help, want at least 60", len(names))
	}
	for _, line := range names {
		for source := range strings.SplitSeq(strings.TrimSpace(line), ", ") {
			name := strings.TrimPrefix(strings.TrimPrefix(source, "file "), "$")
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/configuration.md does not contain %s: run make generate", name)
			}
		}
	}
}
