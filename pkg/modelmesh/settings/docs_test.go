package settings

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// documentedKeys returns the rows of the table in the documentation: key, default, and whether a namespace can set it.
func documentedKeys(t *testing.T) (rows [][3]string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/modelmesh-settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| Key | Default | Namespace | Effect |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 {
			t.Fatalf("the row has %d cells: %s", len(cells), line)
		}
		cell := func(i int) string { return strings.Trim(strings.TrimSpace(cells[i]), "`") }
		rows = append(rows, [3]string{cell(1), cell(2), cell(3)})
	}
	return rows
}

// settingPaths returns the paths of all settings with their authority.
func settingPaths() map[string]authority {
	found := map[string]authority{}
	var walk func(path string, keys []keySpec)
	walk = func(path string, keys []keySpec) {
		for _, k := range keys {
			if k.set != nil {
				found[path+k.name] = k.authority
			}
			walk(path+k.name+".", k.keys)
		}
	}
	walk("", (&Settings{}).keys())
	return found
}

// The documentation lists exactly the existing keys, with their authority and their defaults.
func TestDocumentationListsAllKeys(t *testing.T) {
	var keys []string
	defaults := map[string]any{}
	var text strings.Builder
	for _, row := range documentedKeys(t) {
		keys = append(keys, row[0])
		if want := map[authority]string{adminOrNamespace: "yes", adminOnly: "no"}[settingPaths()[row[0]]]; row[2] != want {
			t.Errorf("%s: got %q in column Namespace, want %q", row[0], row[2], want)
		}
		nest(defaults, strings.Split(row[0], "."), row[1])
	}
	slices.Sort(keys)
	want := slices.Sorted(maps.Keys(settingPaths()))
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys (-program +documentation):\n%s", diff)
	}
	write(&text, defaults, "")
	zero := Settings{}
	for _, r := range resourcesOf(&zero) {
		*r = resources("0", "0", "0", "0")
	}
	requireEqual(t, mustRead(t, zero, text.String()), Default())
}

func nest(tree map[string]any, path []string, value string) {
	if len(path) == 1 {
		tree[path[0]] = value
		return
	}
	child, ok := tree[path[0]].(map[string]any)
	if !ok {
		child = map[string]any{}
		tree[path[0]] = child
	}
	nest(child, path[1:], value)
}

func write(b *strings.Builder, tree map[string]any, indent string) {
	for key, value := range tree {
		if child, ok := value.(map[string]any); ok {
			b.WriteString(indent + key + ":\n")
			write(b, child, indent+"  ")
			continue
		}
		b.WriteString(indent + key + ": " + value.(string) + "\n")
	}
}
