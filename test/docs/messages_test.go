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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updateMessages = flag.Bool("update-messages", false, "write docs/internal/messages.md")

const messagesHead = `<!-- Written by go test ./test/docs -run TestMessagesAreListed -update-messages -->
# Messages

This page is for reviewers: the texts of conditions, Events, refusals, errors and log lines, by package, as the code contains them. A message names
the object, the cause and the fix.
`

// notMessage matches programs, expressions and markup.
var notMessage = regexp.MustCompile(`\n|\$|\(\?|<svg|<path|/bin/| -[a-z] |[\\^]|viewBox|^[a-z_]+=`)

// docs/internal/messages.md contains every text of at least four words in the packages that report to users.
func TestMessagesAreListed(t *testing.T) {
	page := bytes.NewBufferString(messagesHead)
	for _, folder := range []string{"controllers", "pkg", "webhooks"} {
		messages := map[string][]string{}
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
				return err
			}
			name, err := filepath.Rel(root, filepath.Dir(path))
			messages[name] = append(messages[name], messagesOf(t, path)...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(messages)) {
			if len(messages[name]) > 0 {
				fmt.Fprintf(page, "\n## %s\n\n- %s\n", name, strings.Join(messages[name], "\n- "))
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
		t.Errorf("docs/internal/messages.md is stale (%v): review the messages after go test ./test/docs -run TestMessagesAreListed -update-messages", err)
	}
}

// messagesOf returns the string literals of a file that are sentences or parts of one.
func messagesOf(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind == token.STRING && err == nil && len(strings.Fields(text)) >= 4 && !notMessage.MatchString(text) {
				found = append(found, strings.TrimSpace(text))
			}
		}
		return true
	})
	return found
}
