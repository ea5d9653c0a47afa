package modelmesh

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Instance is a running pod of the routing layer.
type Instance struct {
	// ID in the records: the end of the pod's name.
	ID string
	// Labels are its MM_LABELS.
	Labels []string
}

// instanceIDLength is the length of the id of an instance, the end of its pod's name.
const instanceIDLength = 12

// InstanceID is the id of the instance in a pod.
func InstanceID(pod string) string { return pod[max(0, len(pod)-instanceIDLength):] }

// constraints are the labels that types of models require of an instance, the document type_constraints.
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

// required returns the labels that a type requires. An unknown type requires a label that no instance has, `_no_runtime`.
func (c constraints) required(kind string) []string {
	if entry, found := c[kind]; found {
		return entry.Required
	}
	return c["_default"].Required
}

// matches reports whether an instance with labels may load models of a type.
func (c constraints) matches(kind string, labels []string) bool {
	return !slices.ContainsFunc(c.required(kind), func(label string) bool { return !slices.Contains(labels, label) })
}

// noInstanceError is the error of a model that no running instance may load.
func (c constraints) noInstanceError(kind string) string {
	return fmt.Sprintf("There are no running instances that meet the label requirements of type %s: [%s]",
		kind, strings.Join(c.required(kind), ", "))
}
