package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// The group, version and kind of the configuration file.
const (
	fileVersion = "config.platform.opendatahub.io/v1alpha1"
	fileKind    = "PlatformOperatorConfiguration"
)

// shape is what a value is in a document, in the words of refusals.
type shape string

// Shapes of values. A text is what a setting has that names no shape.
const (
	aText    shape = ""
	aSwitch  shape = "true or false"
	aNumber  shape = "a whole number"
	aList    shape = "a list"
	aPeriod  shape = "a duration, or a whole number of nanoseconds"
	anObject shape = "an object"
)

// raw writes a value as flags write it, objects as JSON; ok is false for a value of another shape.
func (s shape) raw(value any) (raw string, ok bool) {
	switch value := value.(type) {
	case string:
		return value, s == aText || s == aPeriod
	case bool:
		return strconv.FormatBool(value), s == aSwitch
	case json.Number:
		if s == aPeriod { // what the originals wrote; a text has a unit
			_, err := value.Int64()
			return value.String() + "ns", err == nil
		}
		return value.String(), s == aNumber
	case []any:
		items := make([]string, len(value))
		for i, item := range value {
			items[i] = fmt.Sprint(item)
		}
		return strings.Join(items, ","), s == aList
	default:
		text, err := json.Marshal(value)
		return string(text), err == nil && s == anObject
	}
}

// refuse says that a value has another shape than it must have.
func (s shape) refuse(from string, value any) error {
	found := fmt.Sprint(value)
	switch value := value.(type) {
	case string:
		found = strconv.Quote(value)
	case []any:
		found = "is a list"
	case map[string]any:
		found = "is an object"
	}
	if s == aText {
		s = "a string"
	}
	return fmt.Errorf("%s %s: must be %s", from, found, s)
}

// document is a configuration file or a ConfigMap, read against the keys that it may have.
type document struct {
	source string
	// rows are the settings by their dotted keys in the document; one without a key of its own has no effect.
	rows map[string]setting
	// fold makes keys the same that differ in what does not count.
	fold func(string) string

	values  map[string]value // by the keys of the settings
	unknown []unknownKey
}

// read reads the keys of an object. An explicit null is as good as absent, unless the setting says otherwise.
func (d *document) read(tree map[string]any, path string) {
	for _, name := range sortedKeys(tree) {
		full := strings.TrimPrefix(path+"."+name, ".")
		row, known := d.rows[d.fold(full)]
		below := d.below(full)
		if strings.Contains(name, ".") { // which is no way to write a path
			known, below = false, nil
		}
		switch {
		case !known && len(below) == 0:
			d.unknown = append(d.unknown, unknownKey{key: name, path: path, known: sortedKeys(d.below(path))})
		case tree[name] == nil && row.null != "":
			d.values[row.key] = value{from: d.source + ": " + full, raw: row.null}
		case tree[name] == nil:
		case len(below) > 0:
			d.readSection(tree[name], full, below)
		case row.key != "":
			d.readValue(tree[name], full, row)
		}
	}
}

// readSection reads an object with settings. Another value in its place is wrong for all of them.
func (d *document) readSection(section any, path string, below map[string][]setting) {
	from := d.source + ": " + path
	fields, isObject := section.(map[string]any)
	if !isObject {
		wrong := value{wrong: anObject.refuse(from, section)}
		for _, row := range slices.Concat(slices.Collect(maps.Values(below))...) {
			d.values[row.key] = wrong
		}
		return
	}
	if row, known := d.rows[d.fold(path)]; known {
		d.values[row.key] = value{from: from, raw: "{}"}
	}
	d.read(fields, path)
}

// readValue reads one setting. An empty text in the place of another shape is as good as absent.
func (d *document) readValue(given any, path string, row setting) {
	if given == "" && row.shape != aText {
		return
	}
	from := d.source + ": " + path
	raw, ok := row.shape.raw(given)
	if !ok {
		d.values[row.key] = value{wrong: row.shape.refuse(from, given)}
		return
	}
	d.values[row.key] = value{from: from, raw: raw}
	if lists, isObject := given.(map[string]any); isObject {
		d.readItems(lists, path, row.items)
	}
}

// readItems finds unknown keys in lists of objects that have names.
func (d *document) readItems(lists map[string]any, path string, known []string) {
	for _, name := range sortedKeys(lists) {
		list, _ := lists[name].([]any)
		for i, item := range list {
			fields, _ := item.(map[string]any)
			for _, key := range sortedKeys(fields) {
				if !slices.Contains(known, d.fold(key)) {
					d.unknown = append(d.unknown, unknownKey{key: key, path: fmt.Sprintf("%s.%s[%d]", path, name, i), known: known})
				}
			}
		}
	}
}

// below returns the settings below a path by the next name in their keys.
func (d *document) below(path string) map[string][]setting {
	found := map[string][]setting{}
	for key, row := range d.rows {
		rest, isBelow := strings.CutPrefix("."+key, strings.TrimSuffix("."+d.fold(path), ".")+".")
		if name, _, _ := strings.Cut(rest, "."); isBelow {
			found[name] = append(found[name], row)
		}
	}
	return found
}

// unknownKey is a key that a document may not have.
type unknownKey struct {
	key, path string // path of the object that has the key
	known     []string
}

// Error implements error. It names what the decoder's own strictness does not: the object, and the keys that it could have.
func (u unknownKey) Error() string {
	where := "at the top"
	if u.path != "" {
		where = "in " + u.path
	}
	hint := ""
	if near := nearest(u.key, u.known); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	return fmt.Sprintf("unknown key %q %s%s; known keys there: %s", u.key, where, hint, strings.Join(u.known, ", "))
}

// readFile reads the configuration file strictly and returns its values by the keys of the settings.
func readFile(path string, read func(string) ([]byte, error), table []setting) (map[string]value, error) {
	raw, err := read(path)
	if errors.Is(err, fs.ErrNotExist) && !strings.Contains(path, "/") {
		return nil, fmt.Errorf("reading the configuration file: %w: --config takes a file; the former operators took the name of a ConfigMap: "+
			"leave the flag out, ConfigMap codeflare-operator-config of the manager's namespace is read without it", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the configuration file: %w: check --config and that the file is mounted", err)
	}
	doc, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, fmt.Errorf("configuration file %s is not valid YAML: %w", path, err)
	}
	tree, err := decodeTree(doc)
	if err != nil {
		return nil, fmt.Errorf("configuration file %s must hold one %s: %w", path, fileKind, err)
	}
	if tree["apiVersion"] != fileVersion || tree["kind"] != fileKind {
		return nil, fmt.Errorf("configuration file %s: apiVersion %v, kind %v: must be %s, %s",
			path, tree["apiVersion"], tree["kind"], fileVersion, fileKind)
	}
	d := document{
		source: path, values: map[string]value{}, fold: func(key string) string { return key },
		rows: map[string]setting{"apiVersion": {}, "kind": {}},
	}
	for _, row := range table {
		if row.key != "" {
			d.rows[row.key] = row
		}
	}
	d.read(tree, "")
	if len(d.unknown) > 0 {
		return nil, fmt.Errorf("configuration file %s: %w", path, d.unknown[0])
	}
	for _, key := range sortedKeys(d.values) {
		if wrong := d.values[key].wrong; wrong != nil {
			return nil, wrong
		}
	}
	return d.values, nil
}

// decodeTree decodes an object of JSON with its numbers as they are written.
func decodeTree(raw []byte) (tree map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&tree)
	return tree, err
}
