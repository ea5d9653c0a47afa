package events

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// Event says that something about a model changed: that it is there, has another state, or is gone.
type Event struct {
	// Source of the model, `ksp` for Predictors and `isvc` for InferenceServices.
	Source string
	// Namespace and Name of its object.
	Namespace, Name string
}

// Base is the prefix of everything that the routing layer behind a Service keeps. Home is the namespace of the controller, whose
// keys stand without their namespace.
func KeyPrefix(rootPrefix, home, namespace, service string) string {
	if namespace == home {
		return rootPrefix + "/mm/" + service
	}
	return rootPrefix + "/mm_ns/" + namespace + "/mm/" + service
}

const (
	vmodelsPrefix  = "/vmodels/"
	registryPrefix = "/registry/"
)

// ownerOf reads the owner from the value of a vmodel. Those that name none are of Predictors.
func parseOwner(value []byte) (string, error) {
	var vmodel struct {
		Owner string `json:"o"`
	}
	if err := json.Unmarshal(value, &vmodel); err != nil {
		return "", fmt.Errorf("the value of a vmodel is not JSON: %w", err)
	}
	return cmp.Or(vmodel.Owner, modelmesh.SourcePredictor), nil
}

// splitID takes the id of a concrete model apart, `<name>__<source>-<hash>`.
func parseModelID(id string) (source, name string, ok bool) {
	name, rest, found := strings.Cut(id, "__")
	end := len(rest) - modelmesh.HashLength - 1
	if !found || name == "" || end < 1 || rest[end] != '-' || strings.Contains(rest[end+1:], "-") {
		return "", "", false
	}
	return rest[:end], name, true
}
