package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

const checkout = "../../.."

func page(t *testing.T) string {
	t.Helper()
	fields, err := readTypes(filepath.Join(checkout, types))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := writePage(&text, config.Rows(program()), fields); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// The page in the checkout is the one that the program writes.
func TestPageIsFresh(t *testing.T) {
	have, err := os.ReadFile(filepath.Join(checkout, "docs/configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page(t) {
		t.Error("docs/configuration.md is stale: run make generate")
	}
}

// Each setting is in one table, with everything that names it.
func TestEverySettingHasALine(t *testing.T) {
	text := page(t)
	rows := config.Rows(program())
	for _, row := range rows {
		if n := strings.Count(text, "\n"+line(row)+"\n"); n < 1 {
			t.Errorf("no line for %+v", row)
		}
	}
	total := 0
	for _, g := range groups(rows) {
		total += len(g.rows)
	}
	if total != len(rows) {
		t.Errorf("%d lines for %d settings: a table is missing from groups", total, len(rows))
	}
}

// Keys that the table of settings has not are those of the two sections, so the page has every key of the file.
func TestEveryKeyOfTheFileHasALine(t *testing.T) {
	fields, err := readTypes(filepath.Join(checkout, types))
	if err != nil {
		t.Fatal(err)
	}
	text := page(t)
	var check func(path, typ string) int
	check = func(path, typ string) (leaves int) {
		for _, f := range fields[typ] {
			full := strings.TrimPrefix(path+"."+f.name, ".")
			if len(fields[f.typ]) > 0 {
				leaves += check(full, f.typ)
				continue
			}
			leaves++
			if !strings.Contains(text, "`"+full+"`") {
				t.Errorf("the page lacks %s", full)
			}
		}
		return leaves
	}
	if n := check("", "PlatformOperatorConfiguration"); n < 60 {
		t.Errorf("%d keys, too few: the types are not read", n)
	}
}

func TestTitles(t *testing.T) {
	for want, row := range map[string]config.Row{
		"Components": {Flag: "enable-mlflow"}, "Listeners": {Flag: "x", Key: "webhook.port"}, "Logging": {Flag: "zap-devel", Key: "logging.development"},
		"Process": {Flag: "kubeconfig"}, "Ray clusters": {Env: []string{"OAUTH_PROXY_IMAGE"}}, "Model Registry": {Key: "modelregistry.image"},
		"Authors of custom resources": {Flag: "author-checks", Key: "admission.authorChecks"}, "Model Catalog": {Key: "modelcatalog.image"}, "ModelMesh": {Key: "modelmesh.image"}, "MLflow": {Key: "mlflow.url"},
	} {
		if got := titleOf(row); got != want {
			t.Errorf("%+v stands under %q, want %q", row, got, want)
		}
	}
}

func TestCells(t *testing.T) {
	row := config.Row{Flag: "a", Env: []string{"B", "C"}, Key: "d.e", Default: filepath.Join(os.TempDir(), "x"), Help: "one | two"}
	if got, want := line(row), "| `--a` | `B`, `C` | `d.e` | `/tmp/x` | one \\| two |"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := line(config.Row{Help: "h"}), "|  |  |  |  | h |"; got != want {
		t.Errorf("got %q", got)
	}
	if steady(os.TempDir()+"orary") != os.TempDir()+"orary" {
		t.Error("only folders count")
	}
}

// Comments lose their markers and their line breaks, fields of other packages have no type here.
func TestReadTypes(t *testing.T) {
	dir := t.TempDir()
	source := "package x\n\n// A is one.\ntype A struct {\n\tInline `json:\",inline\"`\n\n\t// B says\n\t// two things.\n\t// +optional\n\tB *C `json:\"b,omitempty\"`\n\tD other.E `json:\"d\"`\n\tf int\n}\n"
	for _, name := range []string{"a_types.go", "types.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readTypes(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []field{{"b", "C", "B says two things."}, {"d", "", ""}}; !slices.Equal(got["A"], want) {
		t.Errorf("got %+v", got["A"])
	}
	if _, err := readTypes(t.TempDir()); err == nil {
		t.Error("a folder without types is no configuration")
	}
	if err := os.WriteFile(filepath.Join(dir, "types.go"), []byte("no Go"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readTypes(dir); err == nil {
		t.Error("what is no Go is no configuration")
	}
	if err := writePage(&bytes.Buffer{}, nil, got); err == nil {
		t.Error("sections without a type are noticed")
	}
}

func TestRun(t *testing.T) {
	if run(nil) == nil || run([]string{"page"}) == nil {
		t.Error("run needs a page, and the root of the checkout")
	}
	t.Chdir(checkout)
	target := filepath.Join(t.TempDir(), "page.md")
	if err := run([]string{target}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(target); err != nil || len(text) == 0 {
		t.Errorf("nothing was written: %v", err)
	}
}
