package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// field is one key of the configuration file.
type field struct {
	name string
	// typ is the name of the struct that stands there, else empty.
	typ string
	doc string
}

// readTypes returns the fields of every struct of a package, with their comments, by the name of the struct.
func readTypes(dir string) (map[string][]field, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_types.go"))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(fmt.Errorf("there are no types in %s: run this from the root of the checkout", dir), err)
	}
	all := map[string][]field{}
	for _, path := range append(paths, filepath.Join(dir, "types.go")) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("reading the types of the configuration file: %w", err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok {
				if structure, ok := spec.Type.(*ast.StructType); ok {
					all[spec.Name.Name] = fieldsOf(structure)
				}
			}
			return true
		})
	}
	return all, nil
}

func fieldsOf(structure *ast.StructType) []field {
	var fields []field
	for _, f := range structure.Fields.List {
		if f.Tag == nil {
			continue
		}
		name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		if name == "" {
			continue
		}
		fields = append(fields, field{name: name, typ: typeName(f.Type), doc: comment(f.Doc)})
	}
	return fields
}

// typeName is the name of a type of the same package, behind a pointer or not.
func typeName(expr ast.Expr) string {
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	if ident, ok := expr.(*ast.Ident); ok {
		return ident.Name
	}
	return ""
}

// comment is the text of a comment without its markers.
func comment(group *ast.CommentGroup) string {
	var lines []string
	for line := range strings.Lines(group.Text()) {
		if !strings.HasPrefix(line, "+") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}
