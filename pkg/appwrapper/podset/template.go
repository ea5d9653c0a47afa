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

// Decode decodes the template of a component into a new object.
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

// CheckTemplate returns an error unless the path refers to a pod template. Unknown fields are ignored, because a newer Kubernetes may support
// them.
func CheckTemplate(object map[string]any, path string) error {
	_, err := decodeSpec(object, path)
	return err
}

// UnknownFields returns a message for each unknown or duplicate field in the spec of the pod template at the path; none without a template.
func UnknownFields(object map[string]any, path string) []string {
	unknown, err := decodeSpec(object, path)
	if err != nil {
		return nil
	}
	messages := make([]string, 0, len(unknown))
	for _, err := range unknown {
		messages = append(messages, fmt.Sprintf("at path position '%s.spec' %v", path, err))
	}
	return messages
}

// decodeSpec decodes the pod spec of the template at a path and returns its unknown fields.
func decodeSpec(object map[string]any, path string) ([]error, error) {
	template, err := TemplateAt(object, path)
	if err != nil {
		return nil, err
	}
	spec, ok := template["spec"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("content at %s does not contain a spec", path)
	}
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

// Bounds of parsed quantities. The parser of Kubernetes expands small numbers: it would run for minutes with 1e-2000000000 in a
// template.
const (
	maxQuantityLength   = 64
	maxQuantityExponent = 100
)

// ParseQuantity is resource.ParseQuantity for untrusted input.
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
	exponentIndex := strings.IndexAny(text, "eE")
	if exponentIndex < 0 {
		return nil
	}
	exponent, err := strconv.Atoi(text[exponentIndex+1:])
	if err == nil && (exponent > maxQuantityExponent || exponent < -maxQuantityExponent) {
		return fmt.Errorf("quantity %q: write an exponent between -%d and %d", text, maxQuantityExponent, maxQuantityExponent)
	}
	return nil
}

// checkQuantities checks the strings in those fields of a pod spec that hold quantities.
func checkQuantities(value any, path string, quantities bool) error {
	var errs []error
	switch v := value.(type) {
	case map[string]any:
		for field, child := range v {
			errs = append(errs, checkQuantities(child, path+"."+field, quantities || slices.Contains(quantityFields, field)))
		}
	case []any:
		for i, child := range v {
			errs = append(errs, checkQuantities(child, indexPath(path, i), quantities))
		}
	case string:
		if err := checkQuantity(v); quantities && err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return errors.Join(errs...)
}

// quantityFields are the fields of a pod spec that hold quantities at any depth.
var quantityFields = []string{"requests", "limits", "overhead", "sizeLimit", "divisor"}
