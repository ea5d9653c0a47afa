package settings

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
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// section is one level of a document. It reads values over those that are there already, and collects what is wrong. Keys are
// found in any spelling, as in the original.
type section struct {
	path   string // with a dot at the end, "" at the top
	fields map[string]yaml.Node
	folded map[string][]string // keys of fields by their spelling in small letters
	taken  map[string]bool
	// permits says which settings may stand in the document; nil is all.
	permits func(path string) bool
	names   []string // the keys that were asked for
	*findings
}

// findings are those of a whole document.
type findings struct {
	errs []error
	odd  []string // what nobody knows
	// opened and nested count keys and merged mappings.
	opened, nested int
	// asked is told of every path that is asked for, unless it is nil.
	asked func(path string)
}

// enough is how many findings are told: a document may hold a megabyte of mistakes.
const enough = 20

// fail notes a mistake.
func (f *findings) fail(format string, args ...any) {
	if len(f.errs) == enough {
		f.errs = append(f.errs, errors.New("there are more mistakes"))
	}
	if len(f.errs) < enough {
		f.errs = append(f.errs, fmt.Errorf(format, args...))
	}
}

// note notes what has no effect.
func (f *findings) note(format string, args ...any) {
	if len(f.odd) == enough {
		f.odd = append(f.odd, "more is without effect")
	}
	if len(f.odd) < enough {
		f.odd = append(f.odd, fmt.Sprintf(format, args...))
	}
}

// full tells whether no more mistakes are told.
func (f *findings) full() bool { return len(f.errs) > enough }

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
	s := &section{permits: permits, findings: &findings{}}
	if root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
		root = root.Content[0]
	}
	if isNull(root) {
		return s, nil
	}
	fields, err := s.mapping(root)
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

// most is how many keys are opened of one document: a megabyte has fewer, unless anchors repeat them.
const most = 400_000

var errTooMany = errors.New("anchors repeat too many keys: write out what is meant")

// mapping opens a mapping; merged keys count where the mapping itself has none of the name. The decoder of the library would do
// it too, but compares every key with every other.
func (f *findings) mapping(node *yaml.Node) (map[string]yaml.Node, error) {
	node = target(node)
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("it is %s", shown(node))
	}
	fields := make(map[string]yaml.Node, len(node.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := target(node.Content[i]), node.Content[i+1]
		if f.opened++; f.opened > most {
			return nil, errTooMany
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("the key in line %d must be a string", key.Line)
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, target(value))
			continue
		}
		if _, twice := fields[key.Value]; twice {
			return nil, fmt.Errorf("key %q in line %d is there already: leave one", short(key.Value), key.Line)
		}
		fields[key.Value] = *value
	}
	for _, from := range merged {
		if err := f.merge(fields, from); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// merge adds the keys of a mapping, or of a list of them, that are not there yet. A mapping within itself is too much in the end.
func (f *findings) merge(fields map[string]yaml.Node, from *yaml.Node) error {
	list := []*yaml.Node{from}
	if from.Kind == yaml.SequenceNode {
		list = from.Content
	}
	for _, one := range list {
		if one = target(one); one.Kind != yaml.MappingNode {
			return fmt.Errorf("what is merged in line %d must be an object", one.Line)
		}
		if f.nested++; f.nested > 100 {
			return errTooMany
		}
		more, err := f.mapping(one)
		if err != nil {
			return err
		}
		for key, value := range more {
			if _, there := fields[key]; !there {
				fields[key] = value
			}
		}
	}
	return nil
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
	return conditions.Clip(text, 83)
}

// take returns the value of a key, nil for none, and notes that the key is known. Two spellings of one key are a mistake.
func (s *section) take(name string) *yaml.Node {
	s.names = append(s.names, name)
	if s.asked != nil {
		s.asked(s.path + name)
	}
	found := s.spelt(name)
	if len(found) > 1 {
		s.fail("%s%s: it is given %d times, as %s: leave one", s.path, name, len(found), strings.Join(found, ", "))
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
		s.fail("%s%s may not be set for one namespace: it can be set in ConfigMap %s of the manager's namespace", s.path, name, ConfigMapName)
		return nil
	}
	return node
}

// spelt returns the keys that mean a setting, ordered, and notes that they are known.
func (s *section) spelt(name string) []string {
	if s.folded == nil {
		s.folded, s.taken = map[string][]string{}, map[string]bool{}
		for key := range s.fields {
			small := strings.ToLower(key)
			s.folded[small] = append(s.folded[small], key)
		}
	}
	found := s.folded[strings.ToLower(name)]
	slices.Sort(found)
	for _, key := range found {
		s.taken[key] = true
	}
	return found
}

func (s *section) refuse(name string, node *yaml.Node, want string) {
	s.fail("%s%s %s (line %d): must be %s", s.path, name, shown(node), node.Line, want)
}

// open opens what must be a mapping.
func (s *section) open(name string, node *yaml.Node, want string) (map[string]yaml.Node, bool) {
	fields, err := s.mapping(node)
	switch {
	case err == nil:
	case target(node).Kind == yaml.MappingNode: // a key that stands there twice, or an anchor within itself
		s.fail("%s%s (line %d): %w", s.path, name, node.Line, err)
	default:
		s.refuse(name, node, want)
	}
	return fields, err == nil
}

// child reads the section below a key, which may be absent.
func (s *section) child(name string, read func(*section)) {
	child := &section{path: s.path + name + ".", permits: s.permits, findings: s.findings}
	if node := s.take(name); node != nil {
		child.fields, _ = s.open(name, node, "an object")
	}
	read(child)
	child.finish()
}

// finish notes the keys that nobody asked for, with the name that may have been meant.
func (s *section) finish() {
	for _, key := range slices.Sorted(maps.Keys(s.fields)) {
		if !s.taken[key] && len(s.odd) <= enough {
			s.note("%s%s is unknown and has no effect%s", s.path, short(key), nearest(key, s.names))
		}
	}
}

// near is how long a key may be that is compared with those that are known.
const near = 64

func nearest(key string, known []string) string {
	if len(key) > near {
		return ""
	}
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
