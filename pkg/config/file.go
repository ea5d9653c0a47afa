package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/config/v1alpha1"
)

// readFile decodes the configuration file strictly and returns its scalars by dotted key. Lists become
// comma-separated, which is how flags write them. Sections that a ConfigMap may hold too come whole.
func readFile(path string, read func(string) ([]byte, error)) (scalars map[string]string, sections map[string]json.RawMessage, err error) {
	raw, err := read(path)
	if errors.Is(err, fs.ErrNotExist) && !strings.Contains(path, "/") {
		return nil, nil, fmt.Errorf("reading the configuration file: %w: --config takes a file; the former operators took the name of a ConfigMap: "+
			"leave the flag out, ConfigMap codeflare-operator-config of the manager's namespace is read without it", err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration file: %w: check --config and that the file is mounted", err)
	}
	doc, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration file %s is not valid YAML: %w", path, err)
	}
	tree, err := decodeTree(doc)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration file %s must hold one %s: %w", path, configv1alpha1.Kind, err)
	}
	want := configv1alpha1.GroupVersion.String()
	if tree["apiVersion"] != want || tree["kind"] != configv1alpha1.Kind {
		return nil, nil, fmt.Errorf("configuration file %s: apiVersion %v, kind %v: must be %s, %s",
			path, tree["apiVersion"], tree["kind"], want, configv1alpha1.Kind)
	}
	typ := reflect.TypeFor[configv1alpha1.PlatformOperatorConfiguration]()
	if unknown := unknownKeys(tree, typ, "", func(a, b string) bool { return a == b }); len(unknown) > 0 {
		return nil, nil, fmt.Errorf("configuration file %s: %w", path, unknown[0])
	}
	// Only types are checked here. Values are checked by the table, which names the key.
	var typed configv1alpha1.PlatformOperatorConfiguration
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(doc, &typed)); ok {
		return nil, nil, fmt.Errorf("configuration file %s: %w", path, typeError(wrong, "", nil))
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(doc, &whole); err != nil {
		return nil, nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	sections = map[string]json.RawMessage{appWrapperKey: whole[appWrapperKey], rayClusterKey: whole[rayClusterKey]}
	delete(tree, appWrapperKey)
	delete(tree, rayClusterKey)
	scalars = map[string]string{}
	flatten(tree, "", scalars)
	return scalars, sections, nil
}

// section returns a copy of a section of the file; nil when it has none.
func (c Config) section(key string) (tree map[string]any, err error) {
	if len(c.sections[key]) == 0 {
		return nil, nil
	}
	return decodeTree(c.sections[key])
}

// decodeTree decodes an object of JSON with its numbers as they are written.
func decodeTree(raw []byte) (tree map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&tree)
	return tree, err
}

// decode reads a section over the settings; null and an empty text count as absent.
func decode(tree map[string]any, path string, settings any) error {
	dropEmpty(tree)
	raw, err := json.Marshal(tree)
	if err != nil || len(tree) == 0 {
		return err
	}
	err = json.Unmarshal(raw, settings)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return typeError(wrong, path+".", tree)
	}
	return err
}

func dropEmpty(tree map[string]any) {
	for key, value := range tree {
		if child, ok := value.(map[string]any); ok {
			dropEmpty(child)
		} else if value == nil || value == "" {
			delete(tree, key)
		}
	}
}

// typeError names the key of a value of the wrong type, and the value if it is no section or list of the tree.
func typeError(wrong *json.UnmarshalTypeError, path string, tree map[string]any) error {
	found := "is of type " + wrong.Value
	switch value, _, _ := unstructured.NestedFieldNoCopy(tree, strings.Split(wrong.Field, ".")...); value := value.(type) {
	case string:
		found = strconv.Quote(value)
	case bool, json.Number:
		found = fmt.Sprint(value)
	}
	return fmt.Errorf("%s%s %s: must be %s", path, wrong.Field, found, shape(wrong.Type))
}

// shape describes the values of a Go type as YAML has them.
func shape(typ reflect.Type) string {
	if typ == reflect.TypeFor[time.Duration]() {
		return "a duration, or a whole number of nanoseconds"
	}
	switch typ.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	default:
		return "a number (" + typ.Kind().String() + ")"
	}
}

// unknownKey is a key that the type of a document does not have.
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

// unknownKeys compares the keys of a document with the JSON names of a type, level by level. Keys that are the same in another case,
// if same allows that, are renamed.
func unknownKeys(value any, typ reflect.Type, path string, same func(a, b string) bool) []unknownKey {
	if typ == nil { // a list in place of an object, which the decoder reports
		return nil
	}
	var out []unknownKey
	switch value := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(value) {
			name, field := fieldOf(typ, key, same)
			if field == nil {
				out = append(out, unknownKey{key: key, path: path, known: sortedKeys(jsonFields(typ))})
				continue
			}
			if _, taken := value[name]; !taken {
				value[name] = value[key]
			}
			out = append(out, unknownKeys(value[name], field, strings.TrimPrefix(path+"."+name, "."), same)...)
		}
	case []any:
		_, element := fieldOf(typ, "", same)
		for i, item := range value {
			out = append(out, unknownKeys(item, element, fmt.Sprintf("%s[%d]", path, i), same)...)
		}
	}
	return out
}

// fieldOf returns the name and the type of what is below a key. Types that are no objects are left to the decoder.
func fieldOf(typ reflect.Type, key string, same func(a, b string) bool) (string, reflect.Type) {
	switch typ.Kind() {
	case reflect.Struct:
		for name, field := range jsonFields(typ) {
			if same(name, key) {
				return name, field
			}
		}
		return "", nil
	case reflect.Map, reflect.Slice:
		return key, typ.Elem()
	default:
		return key, typ
	}
}

// jsonFields maps the JSON names of a struct to their types, with embedded structs opened and pointers followed.
func jsonFields(typ reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if slices.Contains(strings.Split(options, ","), "inline") {
			for n, t := range jsonFields(field.Type) {
				fields[n] = t
			}
			continue
		}
		t := field.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		fields[name] = t
	}
	return fields
}

// flatten writes scalars under their dotted key. An explicit null is as good as absent.
func flatten(tree map[string]any, path string, out map[string]string) {
	for key, v := range tree {
		full := strings.TrimPrefix(path+"."+key, ".")
		switch v := v.(type) {
		case nil:
		case map[string]any:
			flatten(v, full, out)
		case []any:
			items := make([]string, len(v))
			for i, item := range v {
				items[i] = fmt.Sprint(item)
			}
			out[full] = strings.Join(items, ",")
		default:
			out[full] = fmt.Sprint(v)
		}
	}
}
