package main

import (
	"go/ast"
	"go/parser"
	"go/token"
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

func TestFigures(t *testing.T) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, "p.go", sample, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	s := &sources{imports: map[string][]string{"b": {"c"}}}
	s.note("a/p.go", tree)
	s.imports["pkg/names"] = []string{"b"}
	for _, d := range tree.Decls[1:] {
		s.function("a/p.go", files, funcDecl(d))
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
			t.Errorf("%s = %d, want %d", name, c[0], c[1])
		}
	}
	if s.longest.where != "a/p.go:deep" {
		t.Errorf("longest = %s", s.longest.where)
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
			t.Errorf("%s: report = %t\n%s", name, got, out.String())
		}
	}
}

func funcDecl(d ast.Decl) *ast.FuncDecl { return d.(*ast.FuncDecl) }
