package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Difference is a field that is not as it would be rendered.
type Difference struct {
	// Path of the field, with dots.
	Path string
	// Wanted and Live are the values; Live is nil when the field is not there.
	Wanted, Live any
}

// String shows both values in one line.
func (d Difference) String() string {
	if d.Live == nil {
		return fmt.Sprintf("%s: %s is missing", d.Path, short(d.Wanted))
	}
	return fmt.Sprintf("%s: %s, and would be %s", d.Path, short(d.Live), short(d.Wanted))
}

// of tells about a field of an object of a kind. What a Secret holds is not shown.
func (d Difference) of(kind string) string {
	if field, _, _ := strings.Cut(d.Path, "."); kind == "Secret" && (field == "data" || field == "stringData") {
		return d.Path + ": is another one"
	}
	return d.String()
}

// maxShown is how much of a value is shown.
const maxShown = 100

func short(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(text) > maxShown {
		return string(text[:maxShown]) + "..."
	}
	return string(text)
}

// Differences compares the fields of a rendered object with a live one. What only the live one has belongs to others or to the API server
// and counts for nothing; elements of lists are found by their name, owners by their kind and name, and quantities are compared as such.
func Differences(wanted, live map[string]any) []Difference {
	return compareMaps("", wanted, live)
}

func compareMaps(path string, wanted, live map[string]any) []Difference {
	var out []Difference
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		there, has := live[key]
		if !has && empty(wanted[key]) || wanted[key] == nil || key == "uid" { // of owners, whose uid nobody knows beforehand
			continue
		}
		if !has {
			out = append(out, Difference{Path: join(path, key), Wanted: wanted[key]})
			continue
		}
		out = append(out, compareValues(join(path, key), wanted[key], there)...)
	}
	return out
}

// empty values are not stored.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case bool:
		return !v
	}
	return false
}

func compareValues(path string, wanted, live any) []Difference {
	switch w := wanted.(type) {
	case map[string]any:
		if l, ok := live.(map[string]any); ok {
			return compareMaps(path, w, l)
		}
	case []any:
		if l, ok := live.([]any); ok {
			return compareLists(path, w, l)
		}
	}
	if same(path, wanted, live) {
		return nil
	}
	return []Difference{{path, wanted, live}}
}

func compareLists(path string, wanted, live []any) []Difference {
	var out []Difference
	for i, w := range wanted {
		place := path + "[" + strconv.Itoa(i) + "]"
		id := identity(w)
		j := i
		if id != "" {
			place = path + "[" + id + "]"
			j = slices.IndexFunc(live, func(l any) bool { return identity(l) == id })
		}
		if j < 0 || j >= len(live) {
			out = append(out, Difference{Path: place, Wanted: w})
			continue
		}
		out = append(out, compareValues(place, w, live[j])...)
	}
	return out
}

// identity is what tells the elements of a list apart; "" where that is their place.
func identity(element any) string {
	fields, ok := element.(map[string]any)
	if !ok {
		return ""
	}
	name, _ := fields["name"].(string)
	kind, _ := fields["kind"].(string)
	if kind != "" {
		return kind + " " + name
	}
	return name
}

// same compares two single values. Numbers are the same in whatever type, and quantities in whatever unit.
func same(path string, a, b any) bool {
	x, y := fmt.Sprint(a), fmt.Sprint(b)
	if x == y {
		return true
	}
	if !strings.Contains(path, "resources.") && !strings.Contains(path, "sizeLimit") && !strings.Contains(path, "storage") {
		return false
	}
	p, err := resource.ParseQuantity(x)
	q, other := resource.ParseQuantity(y)
	return err == nil && other == nil && p.Cmp(q) == 0
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
