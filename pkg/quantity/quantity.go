// Package quantity checks quantities of users before they are parsed. The parser of Kubernetes would run for minutes with some of them, such as
// 1e-2000000000, and so would the decoding of a Go type with a resource.Quantity. API servers store such values in custom resources.
package quantity

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of parsed quantities.
const (
	maxLength   = 64
	maxExponent = 100
)

// Parse is resource.ParseQuantity for untrusted input.
func Parse(text string) (resource.Quantity, error) {
	if err := check(text); err != nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(text)
}

func check(text string) error {
	if len(text) > maxLength {
		return fmt.Errorf("quantity of %d characters: write one of at most %d", len(text), maxLength)
	}
	exponent, err := strconv.Atoi(text[strings.IndexAny(text, "eE")+1:])
	if strings.ContainsAny(text, "eE") && (errors.Is(err, strconv.ErrRange) || err == nil && (exponent > maxExponent || exponent < -maxExponent)) {
		return fmt.Errorf("quantity %q: write an exponent between -%d and %d", text, maxExponent, maxExponent)
	}
	return nil
}

// fields are the fields of pod specs and of custom resources that hold quantities at any depth.
var fields = []string{"requests", "limits", "overhead", "sizeLimit", "divisor", "size"}

// Check returns an error for each quantity in an object that would take too long to parse. Other strings are ignored, malformed quantities too.
// path is the path of the object, "" for a root.
func Check(object any, path string) error { return checkValue(object, path, false) }

// CheckJSON is Check for a JSON object. Malformed JSON is ignored.
func CheckJSON(raw []byte) error {
	var object any
	_ = json.Unmarshal(raw, &object)
	return Check(object, "")
}

func checkValue(value any, path string, isQuantity bool) error {
	var errs []error
	switch v := value.(type) {
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			errs = append(errs, checkValue(v[field], strings.TrimPrefix(path+"."+field, "."), isQuantity || slices.Contains(fields, field)))
		}
	case []any:
		for i, child := range v {
			errs = append(errs, checkValue(child, fmt.Sprintf("%s[%d]", path, i), isQuantity))
		}
	case string:
		if err := check(v); isQuantity && err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return errors.Join(errs...)
}
