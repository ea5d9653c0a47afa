package podset

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Root is the first word of every path. It denotes the object.
const Root = "template"

var errRoot = errors.New("first element of the path must be '" + Root + "'")

// pathStep matches one .field or [index] of a path.
var pathStep = regexp.MustCompile(`^(?:\.([^.[]*)|\[([^\]]*)\])`)

// TemplateAt returns the map at a path, without copying it. The error names the last valid position of the path.
func TemplateAt(object map[string]any, path string) (map[string]any, error) {
	remaining, found := strings.CutPrefix(path, Root)
	if !found {
		return nil, errRoot
	}
	var value any = object
	for remaining != "" {
		position := path[:len(path)-len(remaining)]
		step := pathStep.FindStringSubmatch(remaining)
		var err error
		switch {
		case step != nil && remaining[0] == '.':
			value, err = fieldOf(value, step[1])
		case step != nil:
			value, err = elementAt(value, step[2])
		case remaining[0] == '[':
			err = fmt.Errorf("invalid array index '%s'", remaining)
		default:
			err = fmt.Errorf("invalid path element '%s'", remaining)
		}
		if err != nil {
			return nil, fmt.Errorf("at path position '%s' %w", position, err)
		}
		remaining = remaining[len(step[0]):]
	}
	result, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("at path position '%s' %w", path, errNoMap)
	}
	return result, nil
}

var errNoMap = errors.New("non-map value")

func fieldOf(value any, name string) (any, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errNoMap
	}
	next, ok := fields[name]
	if !ok {
		return nil, fmt.Errorf("missing field '%s'", name)
	}
	return next, nil
}

func elementAt(value any, expression string) (any, error) {
	index, err := strconv.Atoi(expression)
	if err != nil {
		return nil, fmt.Errorf("invalid index expression '%s'", expression)
	}
	list, ok := value.([]any)
	if !ok {
		return nil, errors.New("found non-array value")
	}
	if index < 0 || index >= len(list) {
		return nil, fmt.Errorf("out of bounds index '%d'", index)
	}
	return list[index], nil
}
