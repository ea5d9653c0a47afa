// Package apifields reads the comments of API fields, which become their descriptions in CRDs.
package apifields

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Field is a field of a custom resource with its name in JSON and its comment, joined to one line that still begins with //.
type Field struct{ Name, Comment string }

var commented = regexp.MustCompile(`((?:\t//[^\n]*\n)+)[^\n]*json:"(\w+),`)

// Read returns the fields in a Go file that have a comment and an option in their JSON tag, such as omitempty. If typeName is set, Read
// returns only the fields of this type.
func Read(t *testing.T, path, typeName string) (fields []Field) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	if typeName != "" {
		_, after, found := strings.Cut(text, "type "+typeName+" struct")
		if !found {
			t.Fatalf("%s has no type %s", path, typeName)
		}
		text, _, _ = strings.Cut(after, "\n}\n")
	}
	for _, match := range commented.FindAllStringSubmatch(text, -1) {
		fields = append(fields, Field{Name: match[2], Comment: strings.ReplaceAll(match[1], "\n\t//", "")})
	}
	return fields
}
