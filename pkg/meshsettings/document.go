package meshsettings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// section is one level of a document. It reads values over those that are there already, and collects what is wrong. Keys are
// found in any spelling, as in the original.
type section struct {
	path   string // with a dot at the end, "" at the top
	fields map[string]yaml.Node
	taken  map[string]bool
	// permits says which settings may stand in the document; nil is all.
	permits func(path string) bool
	errs    *[]error
	odd     *[]string // what nobody knows
	known   *[]string // every path that was asked for
}

// parse reads a document, which must be one YAML mapping or nothing.
func parse(text string, permits func(string) bool) (*section, error) {
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	root := &yaml.Node{}
	if err := decoder.Decode(root); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("it must be one YAML document: remove what follows the first")
	}
	s := &section{permits: permits, errs: new([]error), odd: new([]string), known: new([]string)}
	if root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
		root = root.Content[0]
	}
	if isNull(root) {
		return s, nil
	}
	fields, err := mapping(root)
	if err != nil {
		return nil, fmt.Errorf("it must be one YAML object with the settings: %w", err)
	}
	s.fields = fields
	return s, nil
}

// isNull tells whether nothing is said: no node, or an explicit null.
func isNull(node *yaml.Node) bool {
	return node == nil || node.Kind == 0 || target(node).ShortTag() == "!!null"
}

// target returns what an alias stands for.
func target(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// mapping opens a mapping; merged keys count.
func mapping(node *yaml.Node) (map[string]yaml.Node, error) {
	if target(node).Kind != yaml.MappingNode {
		return nil, fmt.Errorf("it is %s", shown(node))
	}
	fields := map[string]yaml.Node{}
	if err := node.Decode(&fields); err != nil {
		return nil, err
	}
	return fields, nil
}

// shown is a value as a message quotes it: shortened, and without passing on how it was written.
func shown(node *yaml.Node) string {
	switch node = target(node); node.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", short(node.Value))
}

// short keeps messages readable.
func short(text string) string {
	const enough = 80
	if len(text) > enough {
		return strings.ToValidUTF8(text[:enough], "") + "..."
	}
	return text
}

// take returns the value of a key, nil for none, and notes that the key is known. Two spellings of one key are a mistake.
func (s *section) take(name string) *yaml.Node {
	*s.known = append(*s.known, s.path+name)
	var found []string
	for _, key := range slices.Sorted(maps.Keys(s.fields)) {
		if strings.EqualFold(key, name) {
			s.mark(key)
			found = append(found, key)
		}
	}
	if len(found) > 1 {
		*s.errs = append(*s.errs, fmt.Errorf("%s%s: it is given %d times, as %s: leave one", s.path, name, len(found), strings.Join(found, ", ")))
		return nil
	}
	if len(found) == 0 {
		return nil
	}
	node := s.fields[found[0]]
	if isNull(&node) {
		return nil
	}
	return &node
}

// value is take for a setting that is no section: it also asks whether the document may say it.
func (s *section) value(name string) *yaml.Node {
	node := s.take(name)
	if node != nil && s.permits != nil && !s.permits(s.path+name) {
		*s.errs = append(*s.errs, fmt.Errorf("%s%s may not be set for one namespace: it can be set in ConfigMap %s of the manager's namespace",
			s.path, name, ConfigMapName))
		return nil
	}
	return node
}

func (s *section) mark(key string) {
	if s.taken == nil {
		s.taken = map[string]bool{}
	}
	s.taken[key] = true
}

func (s *section) refuse(name string, node *yaml.Node, want string) {
	*s.errs = append(*s.errs, fmt.Errorf("%s%s %s (line %d): must be %s", s.path, name, shown(node), node.Line, want))
}

// open opens what must be a mapping.
func (s *section) open(name string, node *yaml.Node, want string) (map[string]yaml.Node, bool) {
	fields, err := mapping(node)
	switch {
	case err == nil:
	case target(node).Kind == yaml.MappingNode: // a key that stands there twice, or an anchor within itself
		*s.errs = append(*s.errs, fmt.Errorf("%s%s (line %d): %w", s.path, name, node.Line, err))
	default:
		s.refuse(name, node, want)
	}
	return fields, err == nil
}

// child reads the section below a key, which may be absent.
func (s *section) child(name string, read func(*section)) {
	child := &section{path: s.path + name + ".", permits: s.permits, errs: s.errs, odd: s.odd, known: s.known}
	if node := s.take(name); node != nil {
		child.fields, _ = s.open(name, node, "an object")
	}
	read(child)
	child.finish()
}

// finish notes the keys that nobody asked for, with the name that may have been meant.
func (s *section) finish() {
	var here []string
	for _, path := range *s.known {
		if rest, ok := strings.CutPrefix(path, s.path); ok && !strings.Contains(rest, ".") {
			here = append(here, rest)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.fields)) {
		if s.taken[key] {
			continue
		}
		*s.odd = append(*s.odd, fmt.Sprintf("%s%s is unknown and has no effect%s", s.path, short(key), nearest(key, here)))
	}
}

func nearest(key string, known []string) string {
	best, distance := "", min(max(2, len(key)/4)+1, 8)
	for _, candidate := range known {
		if d := names.Edits(strings.ToLower(key), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}
