package podset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/quantity"
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
	if err := quantity.Check(spec, path+".spec"); err != nil {
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
