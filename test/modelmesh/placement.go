package modelmesh

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Instance is a running pod of the routing layer.
type Instance struct {
	// ID is the end of the pod's name, see InstanceID.
	ID string
	// Labels are those in MM_LABELS of the pod.
	Labels []string
}

const instanceIDLength = 12

// InstanceID returns the id of the instance in a pod, the end of the pod's name.
func InstanceID(pod string) string { return pod[max(0, len(pod)-instanceIDLength):] }

// constraints is the document type_constraints: the labels that each type of models requires of an instance.
type constraints map[string]struct {
	Required []string `json:"required"`
}

func parseConstraints(document []byte) (constraints, error) {
	out := constraints{}
	if len(document) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(document, &out); err != nil {
		return nil, fmt.Errorf("decoding type_constraints: %w", err)
	}
	return out, nil
}

// required returns the labels that a type requires. An unknown type requires those of `_default`.
func (c constraints) required(modelType string) []string {
	if entry, found := c[modelType]; found {
		return entry.Required
	}
	return c["_default"].Required
}

// matches reports whether an instance with the labels may load models of the type.
func (c constraints) matches(modelType string, labels []string) bool {
	return !slices.ContainsFunc(c.required(modelType), func(label string) bool { return !slices.Contains(labels, label) })
}

// noInstanceError returns the error of a model that no running instance may load.
func (c constraints) noInstanceError(modelType string) string {
	return fmt.Sprintf("There are no running instances that meet the label requirements of type %s: [%s]",
		modelType, strings.Join(c.required(modelType), ", "))
}
