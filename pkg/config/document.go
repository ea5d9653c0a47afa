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

// Group, version and kind of the configuration file.
const (
	fileVersion = "config.platform.opendatahub.io/v1alpha1"
	fileKind    = "PlatformOperatorConfiguration"
)

// valueType is the type of a value in a document, as error messages show it.
type valueType string

// Types of values. The default of a setting is typeString.
const (
	typeString   valueType = ""
	typeBool     valueType = "true or false"
	typeInt      valueType = "a whole number"
	typeList     valueType = "a list"
	typeDuration valueType = "a duration, or a whole number of nanoseconds"
	typeObject   valueType = "an object"
)

// format returns a value in the syntax of flags, objects as JSON; ok is false for a value of another type.
func (t valueType) format(value any) (raw string, ok bool) {
	switch value := value.(type) {
	case string:
		return value, t == typeString || t == typeDuration
	case bool:
		return strconv.FormatBool(value), t == typeBool
	case json.Number:
		if t == typeDuration { // nanoseconds, as in legacy ConfigMaps
			_, err := value.Int64()
			return value.String() + "ns", err == nil
		}
		return value.String(), t == typeInt
	case []any:
		items := make([]string, len(value))
		for i, item := range value {
			items[i] = fmt.Sprint(item)
		}
		return strings.Join(items, ","), t == typeList
	default:
		text, err := json.Marshal(value)
		return string(text), err == nil && t == typeObject
	}
}

// typeError returns the error for a value of another type.
func (t valueType) typeError(from string, value any) error {
	found := fmt.Sprint(value)
	switch value := value.(type) {
	case string:
		found = strconv.Quote(value)
	case []any:
		found = "is a list"
	case map[string]any:
		found = "is an object"
	}
	if t == typeString {
		t = "a string"
	}
	return fmt.Errorf("%s %s: must be %s", from, found, t)
}

// document is a configuration file or a ConfigMap that is matched against settings.
type document struct {
	source string
	// settings are the settings by their dotted keys in the document. A setting without key has no effect.
	settings map[string]setting
	// normalizeKey maps equivalent keys to one.
	normalizeKey func(string) string

	values      map[string]value // by setting.key
	unknownKeys []unknownKey
}

// read reads the keys of an object. An explicit null counts as unset, unless the setting has a nullValue.
func (d *document) read(tree map[string]any, path string) {
	for _, name := range sortedKeys(tree) {
		full := strings.TrimPrefix(path+"."+name, ".")
		row, known := d.settings[d.normalizeKey(full)]
		children := d.childSettings(full)
		if strings.Contains(name, ".") { // not a path
			known, children = false, nil
		}
		switch {
		case !known && len(children) == 0:
			d.unknownKeys = append(d.unknownKeys, unknownKey{key: name, path: path, known: sortedKeys(d.childSettings(path))})
		case tree[name] == nil && row.nullValue != "":
			d.values[row.key] = value{source: d.source + ": " + full, raw: row.nullValue}
		case tree[name] == nil:
		case len(children) > 0:
			d.readSection(tree[name], full, children)
		case row.key != "":
			d.readValue(tree[name], full, row)
		}
	}
}

// readSection reads an object that contains settings. A value of another type is an error for all of them.
func (d *document) readSection(section any, path string, children map[string][]setting) {
	from := d.source + ": " + path
	fields, isObject := section.(map[string]any)
	if !isObject {
		invalid := value{err: typeObject.typeError(from, section)}
		for _, row := range slices.Concat(slices.Collect(maps.Values(children))...) {
			d.values[row.key] = invalid
		}
		return
	}
	if row, known := d.settings[d.normalizeKey(path)]; known {
		d.values[row.key] = value{source: from, raw: "{}"}
	}
	d.read(fields, path)
}

// readValue reads one setting. An empty string counts as unset if the setting has another type.
func (d *document) readValue(content any, path string, s setting) {
	if content == "" && s.valueType != typeString {
		return
	}
	from := d.source + ": " + path
	raw, ok := s.valueType.format(content)
	if !ok {
		d.values[s.key] = value{err: s.valueType.typeError(from, content)}
		return
	}
	d.values[s.key] = value{source: from, raw: raw}
	if lists, isObject := content.(map[string]any); isObject {
		d.readItems(lists, path, s.itemKeys)
	}
}

// readItems finds unknown keys in the items of named lists.
func (d *document) readItems(lists map[string]any, path string, knownKeys []string) {
	for _, name := range sortedKeys(lists) {
		list, _ := lists[name].([]any)
		for i, item := range list {
			fields, _ := item.(map[string]any)
			for _, key := range sortedKeys(fields) {
				if !slices.Contains(knownKeys, d.normalizeKey(key)) {
					d.unknownKeys = append(d.unknownKeys, unknownKey{key: key, path: fmt.Sprintf("%s.%s[%d]", path, name, i), known: knownKeys})
				}
			}
		}
	}
}

// childSettings returns the settings below a path, by the next element of their keys.
func (d *document) childSettings(path string) map[string][]setting {
	children := map[string][]setting{}
	for key, row := range d.settings {
		rest, isBelow := strings.CutPrefix("."+key, strings.TrimSuffix("."+d.normalizeKey(path), ".")+".")
		if name, _, _ := strings.Cut(rest, "."); isBelow {
			children[name] = append(children[name], row)
		}
	}
	return children
}

// unknownKey is the error for a key without a setting.
type unknownKey struct {
	key, path string // path is that of the object that contains the key
	known     []string
}

// Error implements error. Unlike strict decoding, it names the object and the known keys.
func (u unknownKey) Error() string {
	where := "at the top"
	if u.path != "" {
		where = "in " + u.path
	}
	hint := ""
	if match := closestMatch(u.key, u.known); match != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", match)
	}
	return fmt.Sprintf("unknown key %q %s%s; known keys there: %s", u.key, where, hint, strings.Join(u.known, ", "))
}

// readFile reads the configuration file strictly and returns its values by setting.key.
func readFile(path string, read func(string) ([]byte, error), table []setting) (map[string]value, error) {
	raw, err := read(path)
	if errors.Is(err, fs.ErrNotExist) && !strings.Contains(path, "/") {
		return nil, fmt.Errorf("reading the configuration file: %w: --config takes a file; the replaced operators took the name of a ConfigMap: "+
			"leave the flag out, because ConfigMap codeflare-operator-config of the manager's namespace is read without it", err)
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
		source: path, values: map[string]value{}, normalizeKey: func(key string) string { return key },
		settings: map[string]setting{"apiVersion": {}, "kind": {}},
	}
	for _, row := range table {
		if row.key != "" {
			d.settings[row.key] = row
		}
	}
	d.read(tree, "")
	if len(d.unknownKeys) > 0 {
		return nil, fmt.Errorf("configuration file %s: %w", path, d.unknownKeys[0])
	}
	for _, key := range sortedKeys(d.values) {
		if err := d.values[key].err; err != nil {
			return nil, err
		}
	}
	return d.values, nil
}

// decodeTree decodes a JSON object and keeps the syntax of numbers.
func decodeTree(raw []byte) (tree map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&tree)
	return tree, err
}
