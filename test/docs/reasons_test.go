package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// chapters maps folders to the chapters of docs/troubleshooting.md that explain their reasons, separated by commas. The longest prefix
// applies.
var chapters = map[string]string{
	"apis/appwrapper": "AppWrapper", "apis/serving": "ModelMesh",
	"controllers/appwrapper": "AppWrapper", "controllers/mlflow": "MLflow",
	"controllers/modelcatalog": "Model Catalog", "controllers/modelmesh": "ModelMesh", "controllers/modelregistry": "Model Registry", "controllers/olm": "OLM",
	"controllers/platform": "Platform", "controllers/raycluster": "Ray clusters",
	"pkg/modelmesh/settings": "ModelMesh", "pkg/raycluster/raysettings": "Ray clusters", "pkg/reconciler": "Every component", "pkg/reference": "Every component", "pkg/routestatus": "Every component", "pkg/servingcert": "Every component",
	"pkg/status/serving": "Model Registry,Model Catalog",
}

// messageOnly are folders whose reasons are never set on an object: messages contain the states of a rollout, and the output of kubectl odh
// contains the states of health.
var messageOnly = []string{"pkg/status/conditions", "pkg/status/health"}

// composedReasons are reasons that the code composes, such as from a word and the state of a model.
var composedReasons = map[string][]string{"Every component": {"NotYetKnown", "Suspended"}, "ModelMesh": {"ModelStandby", "ModelLoading", "ModelFailedToLoad", "InProgress"}}

// collector collects the reasons of one file.
type collector struct{ found map[string]bool }

func (c *collector) addLiteral(e ast.Expr) {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if text, err := strconv.Unquote(lit.Value); err == nil && text != "" {
			c.found[text] = true
		}
	}
}

// Visit collects constants that are named reason or have the type FailureReason, fields named Reason, literals after the type of an Event,
// and the first results of functions that return a reason.
func (c *collector) Visit(node ast.Node) ast.Visitor {
	switch n := node.(type) {
	case *ast.GenDecl:
		if n.Tok == token.CONST {
			for _, spec := range n.Specs {
				c.addConstants(spec.(*ast.ValueSpec))
			}
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Reason" {
			c.addLiteral(n.Value)
		}
	case *ast.CallExpr:
		c.addEventReason(n.Args)
	case *ast.CompositeLit:
		c.addEventReason(n.Elts)
	case *ast.FuncDecl:
		c.addReturned(n)
	}
	return c
}

func (c *collector) addConstants(spec *ast.ValueSpec) {
	typ, _ := spec.Type.(*ast.Ident)
	for i, name := range spec.Names {
		isReason := strings.HasPrefix(name.Name, "Reason") || strings.HasPrefix(name.Name, "reason")
		if i < len(spec.Values) && (isReason || typ != nil && typ.Name == "FailureReason") {
			c.addLiteral(spec.Values[i])
		}
	}
}

func (c *collector) addEventReason(list []ast.Expr) {
	for i := 0; i+1 < len(list); i++ {
		if s, ok := list[i].(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "EventType") {
			c.addLiteral(list[i+1])
		}
	}
}

func (c *collector) addReturned(f *ast.FuncDecl) {
	results := f.Type.Results
	if f.Body == nil || results == nil || len(results.List[0].Names) == 0 || results.List[0].Names[0].Name != "reason" {
		return
	}
	ast.Inspect(f.Body, func(node ast.Node) bool {
		if r, ok := node.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			c.addLiteral(r.Results[0])
		}
		return true
	})
}

// reasons returns the reasons in the code, by chapter.
func reasons(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, top := range []string{"apis", "controllers", "pkg", "webhooks"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			c := &collector{found: map[string]bool{}}
			ast.Walk(c, file)
			folder := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), root+string(filepath.Separator)))
			for _, chapter := range chaptersOf(t, folder, c.found) {
				for reason := range c.found {
					if all[chapter] == nil {
						all[chapter] = map[string]bool{}
					}
					all[chapter][reason] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func chaptersOf(t *testing.T, folder string, found map[string]bool) []string {
	t.Helper()
	best := ""
	for prefix := range chapters {
		if (folder == prefix || strings.HasPrefix(folder, prefix+"/")) && len(prefix) > len(best) {
			best = prefix
		}
	}
	if slices.Contains(messageOnly, folder) {
		clear(found)
	}
	if best == "" && len(found) > 0 {
		t.Errorf("folder %s has no chapter in docs/troubleshooting.md for its reasons %v: add the folder to chapters", folder, found)
	}
	return strings.Split(chapters[best], ",")
}

var entry = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| (.+) \\| (.+) \\| (.+) \\|$")

// docs/troubleshooting.md has exactly one entry for each reason in the code, in its chapter, with place, meaning and fix.
func TestReasonsAreExplained(t *testing.T) {
	want := reasons(t)
	for chapter, more := range composedReasons {
		for _, reason := range more {
			want[chapter][reason] = true
		}
	}
	total := 0
	have := map[string]map[string]bool{}
	for chapter := range strings.SplitSeq(read(t, "docs/troubleshooting.md"), "\n## ") {
		name, text, _ := strings.Cut(chapter, "\n")
		have[name] = map[string]bool{}
		for _, row := range entry.FindAllStringSubmatch(text, -1) {
			if have[name][row[1]] {
				t.Errorf("chapter %s has two entries for %s", name, row[1])
			}
			have[name][row[1]] = true
			total++
			if !want[name][row[1]] {
				t.Errorf("chapter %s has an entry for %s, which is not in the code", name, row[1])
			}
		}
	}
	for chapter, all := range want {
		for reason := range all {
			if !have[chapter][reason] {
				t.Errorf("docs/troubleshooting.md has no entry for %s in chapter %q", reason, chapter)
			}
		}
	}
	if total < 120 {
		t.Errorf("got %d entries, want at least 120: the test does not parse the page correctly", total)
	}
}

// The collector collects reasons in all forms that the code uses, and no other strings.
func TestCollector(t *testing.T) {
	source := `package x
const (
	ReasonA = "A"
	reasonB = "B"
	other   = "No"
)
type FailureReason string
const C FailureReason = "C"
func d() (reason, message string) { return "D", "no" }
func e() (text string) { return "no" }
var f = T{Reason: "F", Message: "no"}
func g() { event(x, core.EventTypeWarning, "G", "no"); _ = note{core.EventTypeNormal, "H", "no"} }
`
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{found: map[string]bool{}}
	ast.Walk(c, file)
	var got []string
	for reason := range c.found {
		got = append(got, reason)
	}
	slices.Sort(got)
	if want := []string{"A", "B", "C", "D", "F", "G", "H"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
