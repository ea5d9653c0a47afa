package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestJoinSkipsInvalidSources(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	models := write("models.yaml", "models: []")
	write("broken.yaml", "models: [")
	const properties = "properties: {yamlCatalogPath: "
	paths := []string{
		write("empty.yaml", "mcp_catalogs: []\nlabels: [{name: A}]"),
		write("team.yaml", `catalogs:
- {id: relative, name: A, type: yaml, labels: [L], `+properties+`models.yaml}}
- {id: absolute, name: B, type: yaml, enabled: false, `+properties+models+`}}
- {id: relative, name: C, type: yaml, `+properties+`models.yaml}}
- {id: absent, name: D, type: yaml, `+properties+`absent.yaml}}
- {id: broken, name: E, type: yaml, `+properties+`broken.yaml}}
- {id: hub, name: F, type: hf}`),
		filepath.Join(folder, "absent-sources.yaml"),
		write("invalid.yaml", "catalogs: 1"),
	}
	joined, problems := join(paths)
	path := `"properties":{"yamlCatalogPath":"` + models + `"}`
	want := `{"catalogs":[{"id":"relative","name":"A","type":"yaml",` + path + `},{"id":"absolute","name":"B","type":"yaml","enabled":false,` + path + `}]}`
	if string(joined) != want {
		t.Errorf("got sources\n%s, want\n%s", joined, want)
	}
	if len(problems) != 6 {
		t.Errorf("got problems %v, want 6", problems)
	}
}

func TestParse(t *testing.T) {
	c, err := parse([]string{"--listen=0.0.0.0:8080", "--catalogs-path=/a", "--catalogs-path=/b", "--performance-metrics=/m"})
	if err != nil || c.listen != "0.0.0.0:8080" || c.benchmarks != "/m" || len(c.sources) != 2 {
		t.Errorf("got settings %+v, error %v", c, err)
	}
	for _, args := range [][]string{{}, {"--listen=a", "--catalogs-path=/a"}, {"--listen=a", "--catalogs-path=/a", "--performance-metrics=/m", "more"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("arguments %q were accepted", args)
		}
	}
}
