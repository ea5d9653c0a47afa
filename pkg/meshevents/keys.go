package meshevents

import (
	"encoding/json"
	"fmt"
	"strings"
)

// DefaultSource owns the vmodels that name no owner.
const DefaultSource = "ksp"

// hashLength is that of the hash at the end of the id of a concrete model.
const hashLength = 10

// Event says that something about a model changed: that it is there, has another state, or is gone.
type Event struct {
	// Source of the model, `ksp` for Predictors and `isvc` for InferenceServices.
	Source string
	// Namespace and Name of its object.
	Namespace, Name string
}

// Base is the prefix of everything that the routing layer behind a Service keeps. Home is the namespace of the controller, whose
// keys stand without their namespace.
func Base(rootPrefix, home, namespace, service string) string {
	if namespace == home {
		return rootPrefix + "/mm/" + service
	}
	return rootPrefix + "/mm_ns/" + namespace + "/mm/" + service
}

const (
	vmodels  = "/vmodels/"
	registry = "/registry/"
)

// ownerOf reads the owner from the value of a vmodel.
func ownerOf(value []byte) (string, error) {
	var vmodel struct {
		Owner string `json:"o"`
	}
	if err := json.Unmarshal(value, &vmodel); err != nil {
		return "", fmt.Errorf("the value of a vmodel is not JSON: %w", err)
	}
	if vmodel.Owner == "" {
		return DefaultSource, nil
	}
	return vmodel.Owner, nil
}

// splitID takes the id of a concrete model apart, `<name>__<source>-<hash>`.
func splitID(id string) (source, name string, ok bool) {
	name, rest, found := strings.Cut(id, "__")
	end := len(rest) - hashLength - 1
	if !found || name == "" || end < 1 || rest[end] != '-' || strings.Contains(rest[end+1:], "-") {
		return "", "", false
	}
	return rest[:end], name, true
}
