package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kserve/kserve/pkg/constants"
	corev1 "k8s.io/api/core/v1"
)

var (
	// qualified matches a key with a prefix. keyConstant matches the names of constants for keys.
	qualified   = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+/[A-Za-z][A-Za-z0-9._-]*-?$`)
	keyConstant = regexp.MustCompile(`(?i)label|annotation|finalizer`)
	keyValue    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.-]+$`)
	keyRow      = regexp.MustCompile("(?m)^\\| ((?:`[^`]+`(?:, )?)+) \\|")
)

// notKeys are strings in the code that look like a key of a label, annotation or finalizer, by their format or by the name of their constant,
// but are not.
var notKeys = []string{
	"apiextensions.k8s.io/v1", "config.platform.opendatahub.io/v1alpha1", // API versions
	"kueue.x-k8s.io/multikueue", "ray.io/kuberay-operator", "workload.codeflare.dev/appwrapper-controller", // values of spec.managedBy
	"labeled-", "true", "webhook-ca", "webhook-serving", // a prefix of volume names, a value, and label values of a metric
}

// keysOutsideCode are keys in the manifests, and keys whose constants are in other modules.
var keysOutsideCode = []string{
	"platform.opendatahub.io/manager", "platform.opendatahub.io/metrics", "odh-platform-operator/keep",
	constants.AutoscalerClass, constants.AutoscalerMetrics, constants.TargetUtilizationPercentage,
	corev1.LabelMetadataName,
}

// codeKeys returns the keys of labels, annotations and finalizers in the code.
func codeKeys(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, top := range []string{"apis", "controllers", "pkg", "webhooks"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			addKeys(file, all)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range notKeys {
		delete(all, key)
	}
	return all
}

// addKeys adds the keys in a file.
func addKeys(file *ast.File, all map[string]bool) {
	prefix := ""
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i >= len(n.Values) || !keyConstant.MatchString(name.Name) {
					continue
				}
				switch value := n.Values[i].(type) {
				case *ast.BasicLit:
					text, err := strconv.Unquote(value.Value)
					if strings.HasSuffix(text, "/") {
						prefix = text
					} else if err == nil && keyValue.MatchString(text) {
						all[text] = true
					}
				case *ast.BinaryExpr: // a constant prefix and a name
					if last, ok := value.Y.(*ast.BasicLit); ok && value.Op == token.ADD {
						text, _ := strconv.Unquote(last.Value)
						first := prefix
						if strings.HasPrefix(text, "/") { // after a constant of KServe
							first = "serving.kserve.io"
						}
						all[first+text] = true
					}
				}
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && qualified.MatchString(text) {
				all[text] = true
			}
		}
		return true
	})
}

// docs/labels.md has exactly one row for each key in the code and in the manifests.
func TestLabelsPageHasAllKeys(t *testing.T) {
	want := codeKeys(t)
	for _, key := range keysOutsideCode {
		want[key] = true
	}
	rows := map[string]int{}
	for _, row := range keyRow.FindAllStringSubmatch(read(t, "docs/labels.md"), -1) {
		for _, key := range quoted.FindAllStringSubmatch(row[1], -1) {
			rows[key[1]]++
		}
	}
	for key, number := range rows {
		if number != 1 || !want[key] {
			t.Errorf("docs/labels.md has key %s %d times, want 1; in the code: %t", key, number, want[key])
		}
	}
	for key := range want {
		if rows[key] == 0 {
			t.Errorf("docs/labels.md does not have key %s", key)
		}
	}
	if len(rows) < 100 {
		t.Errorf("got %d keys, want at least 100: the test does not parse the page correctly", len(rows))
	}
}

// addKeys adds the keys of constants and of string literals, and no other strings.
func TestAddKeys(t *testing.T) {
	source := `package x
import "a.io/b"
const (
	AnnotationPrefix = "c.io/"
	AnnotationA = AnnotationPrefix + "d"
	labelB = "enable-e"
	other = "enable-f"
)
var g = map[string]string{"h.io/i": "j", "k": "not a key"}
`
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	addKeys(file, found)
	if want := map[string]bool{"c.io/d": true, "enable-e": true, "h.io/i": true}; !maps.Equal(found, want) {
		t.Errorf("got %v, want %v", found, want)
	}
}
