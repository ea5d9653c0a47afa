package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `package p

// comment
import "github.com/odh-platform/odh-platform-operator/pkg/names"

func flat() { _ = names.X }

/* two
lines */
func deep(n int) { // not a comment line
	if n > 0 {
		for range n {
			switch n {
			case 1:
				panic("x")
			}
		}
	} else if n < 0 {
		flat()
	} else {
		func() {
			if n == 0 {
				flat()
			}
		}()
	}
}
`

func TestMeasurements(t *testing.T) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, "p.go", sample, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	s := newSources()
	s.imports["b"] = []string{"c"}
	s.addImports("a/p.go", tree)
	s.imports["pkg/names"] = []string{"b"}
	for _, d := range tree.Decls[1:] {
		s.measureFunction("a/p.go", files, funcDecl(d))
	}
	for name, c := range map[string][2]int{
		"code lines": {len(codeLines(sample, files, tree)), 22},
		"longest":    {s.longest.value, 18},
		"deepest":    {s.deepest.value, 3},
		"panics":     {s.panics, 1},
		"depth":      {s.depth(), 4},
		"median":     {quantile([]int{3, 1, 2}, 0.5), 2},
		"empty":      {quantile(nil, 0.5), 0},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: got %d, want %d", name, c[0], c[1])
		}
	}
	if s.longest.where != "a/p.go:deep" {
		t.Errorf("got longest function %s, want a/p.go:deep", s.longest.where)
	}
}

func TestReportFailsOutOfBounds(t *testing.T) {
	for name, c := range map[string]struct {
		figure figure
		ok     bool
	}{
		"at most, below":  {figure{value: 1, bound: 2, atMost: true}, true},
		"at most, equal":  {figure{value: 2, bound: 2, atMost: true}, true},
		"at most, above":  {figure{value: 3, bound: 2, atMost: true}, false},
		"at least, above": {figure{value: 3, bound: 2}, true},
		"at least, below": {figure{value: 1, bound: 2}, false},
	} {
		var out strings.Builder
		if got := report(&out, []figure{c.figure}); got != c.ok || strings.Contains(out.String(), "OUT OF BOUNDS") == c.ok {
			t.Errorf("%s: got %t, want %t\n%s", name, got, c.ok, out.String())
		}
	}
}

func TestReportLines(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		"pkg/a/a.go": sample, "pkg/a/deeper/a.go": "package a\n", "pkg/a/a_test.go": "package a\n",
		"config/a.yaml": "# comment\n\na: b\n", "config/crd/bases/b.yaml": "a: b\n", "test/a.py": "a = 1\n", "pkg/a/a.sh": "ls\n", "pkg/a/a.md": "text\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	s := newSources()
	var out strings.Builder
	if err := errors.Join(filepath.WalkDir(".", s.visit), s.reportLines(&out)); err != nil {
		t.Fatal(err)
	}
	if want := "pkg/a  23\n\nYAML   1\nshell  1\n\n"; out.String() != want {
		t.Errorf("got lines:\n%s\nwant:\n%s", out.String(), want)
	}
}

func funcDecl(d ast.Decl) *ast.FuncDecl { return d.(*ast.FuncDecl) }
