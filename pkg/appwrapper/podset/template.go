package podset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

var errNoObject = errors.New("template is empty: write a complete object with apiVersion, kind and metadata")

// Decode reads the template of a component. Every call returns a new object.
func Decode(component *awv1beta2.AppWrapperComponent) (*unstructured.Unstructured, error) {
	raw := component.Template.Raw
	if raw == nil && component.Template.Object != nil {
		var err error
		if raw, err = json.Marshal(component.Template.Object); err != nil {
			return nil, fmt.Errorf("template cannot be written as JSON: %w", err)
		}
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, errNoObject
	}
	object := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil, fmt.Errorf("template is not a JSON object: %w", err)
	}
	u := &unstructured.Unstructured{Object: object}
	if u.GetAPIVersion() == "" || u.GetKind() == "" {
		return nil, fmt.Errorf("template has apiVersion %q and kind %q: write both", u.GetAPIVersion(), u.GetKind())
	}
	return u, nil
}

// CheckTemplate returns an error unless the path leads to a pod template. Fields that this program does not know are
// ignored, because a newer Kubernetes may well know them.
func CheckTemplate(object map[string]any, path string) error {
	spec, err := specAt(object, path)
	if err != nil {
		return err
	}
	_, err = decodeSpec(spec, path)
	return err
}

// UnknownFields returns a sentence for each field of the pod template at the path that this program does not know, or that
// stands there twice: newer than this program, or misspelt. The object must have a pod template there.
func UnknownFields(object map[string]any, path string) []string {
	spec, err := specAt(object, path)
	if err != nil {
		return nil
	}
	unknown, err := decodeSpec(spec, path)
	if err != nil {
		return nil
	}
	warnings := make([]string, 0, len(unknown))
	for _, err := range unknown {
		warnings = append(warnings, fmt.Sprintf("at path position '%s.spec' %v", path, err))
	}
	return warnings
}

func specAt(object map[string]any, path string) (map[string]any, error) {
	at, err := TemplateAt(object, path)
	if err != nil {
		return nil, err
	}
	spec, ok := at["spec"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("content at %s does not contain a spec", path)
	}
	return spec, nil
}

// decodeSpec reads the fields as those of a pod spec. The first result lists those that it does not know.
func decodeSpec(spec map[string]any, path string) ([]error, error) {
	if err := checkQuantities(spec, path+".spec", false); err != nil {
		return nil, fmt.Errorf("content at %s.spec not parseable as a v1.PodSpec: %w", path, err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("content at %s.spec cannot be written as JSON: %w", path, err)
	}
	unknown, err := kjson.UnmarshalStrict(text, &corev1.PodSpec{})
	if err != nil {
		return nil, fmt.Errorf("content at %s.spec not parseable as a v1.PodSpec: %w", path, err)
	}
	return unknown, nil
}

// Bounds of what is parsed. The parser of Kubernetes writes small numbers out: it would be busy for minutes with
// 1e-2000000000, and a template may say so.
const (
	maxQuantityLength   = 64
	maxQuantityExponent = 100
)

// ParseQuantity is resource.ParseQuantity for unchecked texts.
func ParseQuantity(text string) (resource.Quantity, error) {
	if err := checkQuantity(text); err != nil {
		return resource.Quantity{}, err
	}
	return resource.ParseQuantity(text)
}

func checkQuantity(text string) error {
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
func checkQuantities(value any, place string, quantities bool) error {
	var errs []error
	switch v := value.(type) {
	case map[string]any:
		for field, below := range v {
			errs = append(errs, checkQuantities(below, place+"."+field, quantities || slices.Contains(quantityFields, field)))
		}
	case []any:
		for i, below := range v {
			errs = append(errs, checkQuantities(below, indexPath(place, i), quantities))
		}
	case string:
		if err := checkQuantity(v); quantities && err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
	}
	return errors.Join(errs...)
}

// ofQuantities are the fields in a pod spec below which quantities stand.
var quantityFields = []string{"requests", "limits", "overhead", "sizeLimit", "divisor"}
