package podset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Root is the word that every path starts with; it stands for the object itself.
const Root = "template"

var errRoot = errors.New("first element of the path must be '" + Root + "'")

// At returns the map that the path leads to. It is part of the object and not a copy of it. The error says how far the
// path could be followed.
func At(object map[string]any, path string) (map[string]any, error) {
	rest, found := strings.CutPrefix(path, Root)
	if !found {
		return nil, errRoot
	}
	var value any = object
	for rest != "" {
		var err error
		at := path[:len(path)-len(rest)]
		switch rest[0] {
		case '.':
			value, rest, err = fieldAt(value, rest[1:], at)
		case '[':
			value, rest, err = element(value, rest, at)
		default:
			err = fmt.Errorf("at path position '%s' invalid path element '%s'", at, rest)
		}
		if err != nil {
			return nil, err
		}
	}
	result, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("at path position '%s' non-map value", path)
	}
	return result, nil
}

// fieldAt follows one .field; rest starts after the dot.
func fieldAt(value any, rest, at string) (any, string, error) {
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		end = len(rest)
	}
	name := rest[:end]
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, "", fmt.Errorf("at path position '%s' non-map value", at)
	}
	next, ok := fields[name]
	if !ok {
		return nil, "", fmt.Errorf("at path position '%s' missing field '%s'", at, name)
	}
	return next, rest[end:], nil
}

// element follows one [index]; rest starts with the bracket.
func element(value any, rest, at string) (any, string, error) {
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		return nil, "", fmt.Errorf("at path position '%s' invalid array index '%s'", at, rest)
	}
	expression := rest[1:end]
	index, err := strconv.Atoi(expression)
	if err != nil {
		return nil, "", fmt.Errorf("at path position '%s' invalid index expression '%s'", at, expression)
	}
	list, ok := value.([]any)
	if !ok {
		return nil, "", fmt.Errorf("at path position '%s' found non-array value", at)
	}
	if index < 0 || index >= len(list) {
		return nil, "", fmt.Errorf("at path position '%s' out of bounds index '%d'", at, index)
	}
	return list[index], rest[end+1:], nil
}
