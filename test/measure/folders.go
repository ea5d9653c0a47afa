package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// languages maps file extensions to the languages of the product other than Go.
var languages = map[string]string{".py": "Python", ".sh": "shell", ".yaml": "YAML", ".yml": "YAML"}

// countLines counts the lines of a file in another language, except tests, pages and generated manifests.
func (s *sources) countLines(path string) error {
	language := languages[filepath.Ext(path)]
	for _, excluded := range []string{"test/", "docs/", "bundle/", "config/crd/bases/"} {
		if language == "" || strings.HasPrefix(path, excluded) {
			return nil
		}
	}
	text, err := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			s.languages[language]++
		}
	}
	return err
}

// folder returns the first two levels of the folder of a file.
func folder(path string) string {
	levels := strings.Split(filepath.ToSlash(filepath.Dir(path)), "/")
	return strings.Join(levels[:min(2, len(levels))], "/")
}

// reportLines prints the production lines of each folder and of the languages other than Go.
func (s *sources) reportLines(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, counts := range []map[string]int{s.folders, s.languages} {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			fmt.Fprintf(table, "%s\t%d\n", name, counts[name])
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
