package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The page of settings names every flag, variable and key that --help names: its generator lists the components by itself.
func TestConfigurationPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^  (--|\$|file ).*$`).FindAllString(usage(process{registry: componentSpecs}), -1)
	if len(names) < 60 {
		t.Fatalf("--help has %d settings: the test reads it wrongly", len(names))
	}
	for _, line := range names {
		for place := range strings.SplitSeq(strings.TrimSpace(line), ", ") {
			name := strings.TrimPrefix(strings.TrimPrefix(place, "file "), "$")
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/configuration.md lacks %s: run make generate", name)
			}
		}
	}
}
