// Command measure checks the code against the limits of the project: lengths of functions and files, nesting, depth of imports, test lines
// per production line, suppressed findings and panics. It prints the production lines of each folder and language, and a table of the
// figures. It exits with code 1 if a figure is out of bounds. Generated files do not count, and types files count only
// in the totals, in suppressed findings and in the depth of imports. Totals are lines of code without blank lines and comments.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/odh-platform/odh-platform-operator/"

// sources holds the measurements of the source tree.
type sources struct {
	functions, files, nestings []int
	longest, deepest, largest  maximum
	production, tests          int
	suppressed, panics         int
	imports                    map[string][]string
	folders, languages         map[string]int
}

func newSources() *sources {
	return &sources{imports: map[string][]string{}, folders: map[string]int{}, languages: map[string]int{}}
}

// maximum is the largest value of a figure, with its location.
type maximum struct {
	value int
	where string
}

func (p *maximum) setMax(value int, where string) {
	if value > p.value {
		*p = maximum{value, where}
	}
}

func main() {
	s := newSources()
	if err := errors.Join(filepath.WalkDir(".", s.visit), s.reportLines(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "measuring the tree:", err)
		os.Exit(1)
	}
	if !report(os.Stdout, s.figures()) {
		os.Exit(1)
	}
}

func (s *sources) visit(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if entry.IsDir() {
		if name := entry.Name(); path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		return nil
	}
	if !strings.HasSuffix(path, ".go") {
		return s.countLines(path)
	}
	if name := entry.Name(); strings.HasSuffix(name, ".pb.go") || strings.HasPrefix(name, "zz_generated") {
		return nil
	}
	return s.measureFile(path)
}

func (s *sources) measureFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	code := codeLines(string(text), files, tree)
	isTest := strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "test/") || strings.HasSuffix(filepath.Dir(path), "test")
	if isTest {
		s.tests += len(code)
	} else {
		s.production += len(code)
		s.folders[folder(path)] += len(code)
		s.suppressed += strings.Count(string(text), "//nolint")
		s.addImports(path, tree)
	}
	if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_types.go") {
		return nil
	}
	lines := strings.Count(string(text), "\n")
	s.files = append(s.files, lines)
	s.largest.setMax(lines, path)
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			s.measureFunction(path, files, f)
		}
	}
	return nil
}

func (s *sources) measureFunction(path string, files *token.FileSet, f *ast.FuncDecl) {
	where := path + ":" + f.Name.Name
	length := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
	s.functions = append(s.functions, length)
	s.longest.setMax(length, where)
	deep := nesting(f.Body, 0)
	s.nestings = append(s.nestings, deep)
	s.deepest.setMax(deep, where)
	if strings.HasPrefix(path, "test/") {
		return
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "panic" {
				s.panics++
			}
		}
		return true
	})
}

// addImports records the packages of this module that a file imports.
func (s *sources) addImports(path string, tree *ast.File) {
	from := filepath.ToSlash(filepath.Dir(path))
	for _, i := range tree.Imports {
		if to, internal := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); internal {
			s.imports[from] = append(s.imports[from], to)
		}
	}
}

// codeLines returns the numbers of the lines that contain code.
func codeLines(text string, files *token.FileSet, tree *ast.File) map[int]bool {
	lines := map[int]bool{}
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) != "" {
			lines[i+1] = true
		}
	}
	all := strings.Split(text, "\n")
	for _, group := range tree.Comments {
		for n := files.Position(group.Pos()).Line; n <= files.Position(group.End()).Line; n++ {
			line := strings.TrimSpace(all[n-1])
			if strings.HasPrefix(line, "//") || strings.HasPrefix(line, "/*") || strings.HasPrefix(line, "*") {
				delete(lines, n)
			}
		}
	}
	return lines
}

// nesting returns the depth of nested control structures below n.
func nesting(n ast.Node, depth int) int {
	deepest := depth
	ast.Inspect(n, func(child ast.Node) bool {
		switch c := child.(type) {
		case *ast.IfStmt:
			deepest = max(deepest, branches(c, depth))
			return false
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			deepest = max(deepest, nesting(body(c), depth+1))
			return false
		}
		return true
	})
	return deepest
}

// branches returns the nesting of an if statement. An else-if is at the level of its if.
func branches(i *ast.IfStmt, depth int) int {
	deepest := nesting(i.Body, depth+1)
	if next, chained := i.Else.(*ast.IfStmt); chained {
		return max(deepest, branches(next, depth))
	}
	if i.Else != nil {
		deepest = max(deepest, nesting(i.Else, depth+1))
	}
	return deepest
}

func body(n ast.Node) ast.Node {
	switch s := n.(type) {
	case *ast.ForStmt:
		return s.Body
	case *ast.RangeStmt:
		return s.Body
	case *ast.SwitchStmt:
		return s.Body
	case *ast.TypeSwitchStmt:
		return s.Body
	case *ast.SelectStmt:
		return s.Body
	}
	return n
}

func quantile(values []int, q float64) int {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// depth returns the length of the longest chain of imports inside the module.
func (s *sources) depth() int {
	memo := map[string]int{}
	var measure func(string) int
	measure = func(p string) int {
		if d, ok := memo[p]; ok {
			return d
		}
		memo[p] = 1
		for _, next := range s.imports[p] {
			memo[p] = max(memo[p], 1+measure(next))
		}
		return memo[p]
	}
	deepest := 0
	for p := range s.imports {
		deepest = max(deepest, measure(p))
	}
	return deepest
}
