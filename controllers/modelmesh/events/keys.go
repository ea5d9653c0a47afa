package events

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// Event identifies a model that was created, changed or deleted in the mesh.
type Event struct {
	// Source is `ksp` for Predictors and `isvc` for InferenceServices.
	Source string
	// Namespace and Name identify the resource.
	Namespace, Name string
}

// KeyPrefix returns the prefix of all keys of the routing layer behind a Service. Keys of unprefixedNamespace do not contain the
// namespace.
func KeyPrefix(rootPrefix, unprefixedNamespace, namespace, service string) string {
	if namespace == unprefixedNamespace {
		return rootPrefix + "/mm/" + service
	}
	return rootPrefix + "/mm_ns/" + namespace + "/mm/" + service
}

const (
	vmodelsPrefix  = "/vmodels/"
	registryPrefix = "/registry/"
)

// parseVModel returns the owner of a vmodel and its ID. A vmodel without an owner belongs to the source of Predictors.
func parseVModel(id string, value []byte) (source, name string, err error) {
	var vmodel struct {
		Owner string `json:"o"`
	}
	if err := json.Unmarshal(value, &vmodel); err != nil {
		return "", "", fmt.Errorf("the value of a vmodel is not JSON: %w", err)
	}
	return cmp.Or(vmodel.Owner, modelmesh.SourcePredictor), id, nil
}

// parseModelID parses the ID of a concrete model, `<name>__<source>-<hash>`.
func parseModelID(id string, _ []byte) (source, name string, err error) {
	name, rest, found := strings.Cut(id, "__")
	end := len(rest) - modelmesh.HashLength - 1
	if !found || name == "" || end < 1 || rest[end] != '-' || strings.Contains(rest[end+1:], "-") {
		return "", "", fmt.Errorf("the id of a concrete model is not <name>__<source>-<hash>: %s", id)
	}
	return rest[:end], name, nil
}
