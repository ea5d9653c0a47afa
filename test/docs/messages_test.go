package docs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updateMessages = flag.Bool("update-messages", false, "write docs/internal/messages.md")

const messagesHead = `<!-- Written by go test ./test/docs -run TestMessages -update-messages -->
# Messages

This page is for reviewers. It lists the texts of conditions, Events, refusals, errors and log lines in the code, by package and by outlet.
Three dots represent a value. A condition, Event or refusal contains the object, the cause and the fix;
` + "`test/docs/testdata/messages_without_fix.txt`" + ` lists the texts without a fix, with the reason. Commands print the fix separately, and help texts need none.
`

// An outlet is where users read a text. Errors become refusals and messages of conditions, so these are one outlet.
const (
	reported     = "Conditions, Events and refusals"
	actions      = "Failed actions, followed by their cause"
	logged       = "Log lines"
	steps        = "Steps, rules and conditions to wait for"
	expectations = "Valid values, after “must be”"
	descriptions = "Descriptions of settings, metrics and roles"
	notes        = "Notes on rendered objects"
)

// outlets are the outlets in the order of the page.
var outlets = []string{reported, actions, logged, steps, expectations, descriptions, notes}

// message is a text in the code.
type message struct{ outlet, text string }

// notMessage matches programs, expressions and markup.
var notMessage = regexp.MustCompile(`\n|\$|\(\?|<svg|<path|/bin/| -[a-z] |[\\^]|viewBox|^[a-z_]+=|^\{"|^from mlflow|^openssl|^M\d+ `)

var (
	// anyFix matches an imperative at the start of a clause, a requirement, or a wait.
	anyFix = regexp.MustCompile(`(?i)(?:(?:^|[:;.,)] |%s )(?:please )?(?:add|allow|annotate|apply|ask|build|change|check|choose|configure|copy|correct|create|declare|delete|describe|enable|fix|free|give|grant|` +
		`have|install|keep|label|leave|let|list|lower|merge|move|name|percent-encode|publish|put|raise|read|recreate|reduce|remove|rename|renew|replace|request|restart|restore|run|see|send|serve|set|split|` +
		`start|stop|switch|upgrade|use|wait|write|try again)|\b(?:must|has to|needs to|need to|should be)|\bwait(?:s|ing)?(?: for| until| a few minutes|s? with)|\bto (?:remove|keep|change|avoid) )\b`)
	// cause matches a text that ends with another text, which has its own fix.
	cause = regexp.MustCompile(`(?:: |%w|\()(?:%[wvsq]|…)\)?$|: $|:$`)
)

// action matches the name of an action at the beginning of an error.
var action = regexp.MustCompile(`^(?:adding|building|checking|deleting|ensuring|finding|issuing|keeping|learning|listing|looking|maintaining|reading|scheduling|writing) [^:;]*$`)

// hasFix reports whether a text contains a fix.
func hasFix(text string) bool { return anyFix.MatchString(text) }

// docs/internal/messages.md lists the texts of at least four words in the packages that report to users.
func TestMessages(t *testing.T) {
	page, all := bytes.NewBufferString(messagesHead), messagesByPackage(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(page, "\n## %s\n", name)
		for _, outlet := range outlets {
			heading := outlet
			if outlet == reported && strings.HasPrefix(name, "cmd/") {
				heading = "Output"
			}
			if texts := inOutlet(all[name], outlet); len(texts) > 0 {
				fmt.Fprintf(page, "\n%s:\n\n- %s\n", heading, strings.Join(texts, "\n- "))
			}
		}
	}
	file := filepath.Join(root, "docs/internal/messages.md")
	if *updateMessages {
		if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, page.Bytes()) {
		t.Errorf("docs/internal/messages.md is stale (%v): review the messages after go test ./test/docs -run TestMessages -update-messages", err)
	}
}

// Every condition, Event and refusal contains a fix, ends with a cause that has one, or is in the reviewed list of texts without a fix.
// Texts of commands are exempt, because kubectl odh prints the fix of a problem separately, and help texts need none.
func TestMessagesContainFix(t *testing.T) {
	reviewed := map[string]bool{}
	reason := ""
	for line := range strings.Lines(read(t, "test/docs/testdata/messages_without_fix.txt")) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "# "):
			reason = line
		case line == "":
		case reason == "" || reviewed[line]:
			t.Errorf("messages_without_fix.txt has %q twice, or without a reason above it", line)
		default:
			reviewed[line] = false
		}
	}
	all := messagesByPackage(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, text := range inOutlet(all[name], reported) {
			if strings.HasPrefix(name, "cmd/") {
				continue
			}
			_, listed := reviewed[text]
			switch {
			case listed:
				reviewed[text] = true
			case !hasFix(text) && !cause.MatchString(text):
				t.Errorf("%s: %q contains no fix: add one (“: set spec.x”), or list the text in testdata/messages_without_fix.txt", name, text)
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(reviewed)) {
		if !reviewed[text] {
			t.Errorf("messages_without_fix.txt has %q, which is not in the code", text)
		}
	}
}

func TestHasFix(t *testing.T) {
	for text, want := range map[string]bool{
		"Secret %s does not exist; create it":                        true,
		"the host %s is taken: choose another name":                  true,
		"spec.size must be greater than zero":                        true,
		"Waiting for migration Job %s to finish":                     true,
		"Check the log of the manager":                               true,
		"Only found %d deployed components, but was expecting %d":    false,
		"the rollout made no progress within its deadline":           false,
		"the settings of the operator, which created the Deployment": false,
	} {
		if hasFix(text) != want {
			t.Errorf("hasFix(%q) = %v, want %v", text, !want, want)
		}
	}
}

// inOutlet returns the unique texts of an outlet, in the order of the code.
func inOutlet(messages []message, outlet string) []string {
	var texts []string
	for _, m := range messages {
		if m.outlet == outlet && !slices.Contains(texts, m.text) {
			texts = append(texts, m.text)
		}
	}
	return texts
}

// messagesByPackage returns the texts of the packages that report to users.
func messagesByPackage(t *testing.T) map[string][]message {
	t.Helper()
	all := map[string][]message{}
	for _, folder := range []string{"cmd/kubectl-odh", "cmd/manager", "controllers", "pkg", "webhooks"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
				return err
			}
			name, err := filepath.Rel(root, filepath.Dir(path))
			if found := messagesOf(t, path); len(found) > 0 {
				all[name] = append(all[name], found...)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// messagesOf returns the texts of a file, with their outlets.
func messagesOf(t *testing.T, path string) []message {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []message
	var parents []ast.Node
	ast.Inspect(file, func(node ast.Node) bool {
		if node == nil {
			parents = parents[:len(parents)-1]
			return true
		}
		if field, ok := node.(*ast.Field); ok {
			if field.Tag != nil {
				tag, _ := strconv.Unquote(field.Tag.Value) // the file was parsed
				if help := reflect.StructTag(tag).Get("help"); len(strings.Fields(help)) >= 4 {
					found = append(found, message{descriptions, help})
				}
			}
			field.Tag = nil
		}
		if expression, ok := node.(ast.Expr); ok {
			if text, literal := textOf(expression); literal && len(strings.Fields(text)) >= 4 && !notMessage.MatchString(text) {
				text = strings.TrimSpace(text)
				outlet := outletOf(parents, text)
				if outlet == reported && filepath.Base(path) == "render.go" {
					outlet = notes
				}
				if outlet != "" {
					found = append(found, message{outlet, text})
				}
				return false
			}
		}
		parents = append(parents, node)
		return true
	})
	return found
}

// textOf returns the text of an expression of string literals and values. literal reports whether it contains a literal.
func textOf(expression ast.Expr) (text string, literal bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, first := textOf(e.X)
			right, second := textOf(e.Y)
			return left + right, first || second
		}
	}
	return "…", false
}

// byCall maps functions to the outlets of their arguments. byField maps fields to the outlets of their values.
var (
	byCall = map[string]string{
		"Error": logged, "Info": logged, "validated": expectations, "text": expectations, "stringList": expectations, "objectList": expectations,
		"reject": expectations, "parsed": expectations, "MetaForDashboard": descriptions, "recordStep": steps, "promoteNext": steps, "newLeaf": steps,
		"CheckFailed": actions, "reportNonFatal": actions, "Contains": "", "CutPrefix": "", "MustCompile": "", "HasPrefix": "",
	}
	byField = map[string]string{"For": steps, "Name": steps, "help": descriptions, "Help": descriptions, "defaultValue": descriptions, "annotationDescription": descriptions}
)

// outletOf returns the outlet of a text, or "" for patterns and for log lines with a verbosity above 0.
func outletOf(parents []ast.Node, text string) string {
	for _, parent := range slices.Backward(parents) {
		switch p := parent.(type) {
		case *ast.CallExpr:
			outlet, known := byCall[calleeOf(p)]
			if selector, ok := p.Fun.(*ast.SelectorExpr); ok && known {
				if verbosity, ok := selector.X.(*ast.CallExpr); ok && calleeOf(verbosity) == "V" {
					return ""
				}
			}
			if known {
				return outlet
			}
			return reportedOrAction(text)
		case *ast.KeyValueExpr:
			if key, ok := p.Key.(*ast.Ident); ok {
				if outlet, known := byField[key.Name]; known {
					return outlet
				}
			}
		case *ast.CompositeLit:
			if isRule(p) {
				return steps
			}
		}
	}
	return reportedOrAction(text)
}

// reportedOrAction returns the outlet of a text that has no other outlet.
func reportedOrAction(text string) string {
	if (cause.MatchString(text) || action.MatchString(text)) && !hasFix(text) {
		return actions
	}
	return reported
}

// isRule reports whether a composite literal is a rule, which consists of a name, a condition and a decision.
func isRule(literal *ast.CompositeLit) bool {
	if len(literal.Elts) != 3 {
		return false
	}
	for _, element := range literal.Elts[1:] {
		switch element.(type) {
		case *ast.FuncLit, *ast.Ident, *ast.SelectorExpr, *ast.ParenExpr, *ast.CallExpr:
		default:
			return false
		}
	}
	_, literalName := literal.Elts[0].(*ast.BasicLit)
	return literalName && literal.Type == nil
}

func calleeOf(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}
