package podset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of what is parsed. The parser of Kubernetes writes small numbers out: it would be busy for minutes with
// 1e-2000000000, and a template may say so.
const (
	maxQuantityLength   = 64
	maxQuantityExponent = 100
)

// ParseQuantity is resource.ParseQuantity for unchecked texts.
func ParseQuantity(text string) (resource.Quantity, error) {
	if err := boundedQuantity(text); err != nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(text)
}

func boundedQuantity(text string) error {
	if len(text) > maxQuantityLength {
		return fmt.Errorf("quantity of %d characters: write one of at most %d", len(text), maxQuantityLength)
	}
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return nil
	}
	exponent, err := strconv.Atoi(text[at+1:])
	if err == nil && (exponent > maxQuantityExponent || exponent < -maxQuantityExponent) {
		return fmt.Errorf("quantity %q: write an exponent between -%d and %d", text, maxQuantityExponent, maxQuantityExponent)
	}
	return nil
}

// boundedQuantities checks every text below the fields of a pod spec that hold quantities.
func boundedQuantities(value any, place string, quantities bool) error {
	var errs []error
	switch v := value.(type) {
	case map[string]any:
		for field, below := range v {
			errs = append(errs, boundedQuantities(below, place+"."+field, quantities || holdsQuantities(field)))
		}
	case []any:
		for i, below := range v {
			errs = append(errs, boundedQuantities(below, indexed(place, i), quantities))
		}
	case string:
		if err := boundedQuantity(v); quantities && err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
	}
	return errors.Join(errs...)
}

// holdsQuantities is for the names in a pod spec below which quantities stand.
func holdsQuantities(field string) bool {
	switch field {
	case "requests", "limits", "overhead", "sizeLimit", "divisor":
		return true
	}
	return false
}
