package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/config/v1alpha1"
)

// readFile decodes the configuration file strictly and returns its scalars by dotted key. Lists become
// comma-separated, which is how flags write them. Sections that a ConfigMap may hold too come whole.
func readFile(path string, read func(string) ([]byte, error)) (scalars map[string]string, sections map[string]map[string]any, err error) {
	raw, err := read(path)
	if errors.Is(err, fs.ErrNotExist) && !strings.Contains(path, "/") {
		return nil, nil, fmt.Errorf("reading the configuration file: %w: --config takes a file; the operators before took the name of a ConfigMap: "+
			"leave the flag out, ConfigMap codeflare-operator-config of the manager's namespace is read without it", err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration file: %w: check --config and that the file is mounted", err)
	}
	doc, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration file %s is not valid YAML: %w", path, err)
	}
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, nil, fmt.Errorf("configuration file %s must hold one %s: %w", path, configv1alpha1.Kind, err)
	}
	want := configv1alpha1.GroupVersion.String()
	if tree["apiVersion"] != want || tree["kind"] != configv1alpha1.Kind {
		return nil, nil, fmt.Errorf("configuration file %s: apiVersion %v, kind %v: must be %s, %s",
			path, tree["apiVersion"], tree["kind"], want, configv1alpha1.Kind)
	}
	if err := checkKeys(tree, reflect.TypeFor[configv1alpha1.PlatformOperatorConfiguration](), ""); err != nil {
		return nil, nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	// Only types are checked here: what a value says is for the table, which names the key.
	var typed configv1alpha1.PlatformOperatorConfiguration
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(doc, &typed)); ok {
		return nil, nil, fmt.Errorf("configuration file %s: %s is of type %s: must be of type %s", path, wrong.Field, wrong.Value, shape(wrong.Type))
	}
	sections = map[string]map[string]any{}
	for _, key := range []string{appWrapperKey, rayClusterKey} {
		if section, ok := tree[key].(map[string]any); ok {
			sections[key] = section
		}
		delete(tree, key)
	}
	scalars = map[string]string{}
	flatten(tree, "", scalars)
	return scalars, sections, nil
}

// shape names a Go type as YAML does.
func shape(typ reflect.Type) string {
	switch typ.Kind() {
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice:
		return "list"
	default:
		return typ.Kind().String()
	}
}

// checkKeys compares the keys of a document with the JSON names of a type, level by level. The decoder's own
// strictness would name the key, but neither where it stands nor what could stand there.
func checkKeys(tree map[string]any, typ reflect.Type, path string) error {
	fields := jsonFields(typ)
	for _, key := range sortedKeys(tree) {
		field, ok := fields[key]
		if !ok {
			where := "at the top"
			if path != "" {
				where = "in " + path
			}
			hint := ""
			if near := nearest(key, sortedKeys(fields)); near != "" {
				hint = fmt.Sprintf(" (did you mean %s?)", near)
			}
			return fmt.Errorf("unknown key %q %s%s; known keys there: %s", key, where, hint, strings.Join(sortedKeys(fields), ", "))
		}
		child, isMap := tree[key].(map[string]any)
		if isMap && field.Kind() == reflect.Struct {
			if err := checkKeys(child, field, strings.TrimPrefix(path+"."+key, ".")); err != nil {
				return err
			}
		}
	}
	return nil
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
