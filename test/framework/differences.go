package framework

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference is a field in which a built object differs from the recorded object.
type Difference struct{ Path, Recorded, Built string }

// Differences compares [Leaves] of recorded and of built objects. Built objects may lack defaultedFields, which the API server sets.
func Differences(recorded, built map[string]string, defaultedFields *regexp.Regexp) []Difference {
	const absent = "nothing"
	var differences []Difference
	for _, path := range slices.Sorted(maps.Keys(recorded)) {
		value, found := built[path]
		switch {
		case !found && !defaultedFields.MatchString(path):
			differences = append(differences, Difference{path, recorded[path], absent})
		case found && value != recorded[path]:
			differences = append(differences, Difference{path, recorded[path], value})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(built)) {
		if _, found := recorded[path]; !found {
			differences = append(differences, Difference{path, absent, built[path]})
		}
	}
	return differences
}

// Leaves maps the path of each field of the objects to its value. Values of binaryData are decoded, as in recordings.
func Leaves(objects []*unstructured.Unstructured) map[string]string {
	leaves := map[string]string{}
	for _, o := range objects {
		u := Normalize(o)
		binary, _, _ := unstructured.NestedStringMap(u.Object, "binaryData")
		for key, value := range binary {
			if text, err := base64.StdEncoding.DecodeString(value); err == nil {
				u.Object["binaryData"].(map[string]any)[key] = string(text)
			}
		}
		Flatten(o.GetKind()+"/"+o.GetName(), u.Object, leaves)
	}
	return leaves
}

// Flatten adds the leaves of a value to a map, by their paths with the given path as prefix.
func Flatten(path string, value any, leaves map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			Flatten(path+"."+key, child, leaves)
		}
	case []any:
		for i, child := range v {
			Flatten(fmt.Sprintf("%s[%d]", path, i), child, leaves)
		}
	default:
		leaves[path] = fmt.Sprint(v)
	}
}
