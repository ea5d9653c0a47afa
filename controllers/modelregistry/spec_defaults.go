package modelregistry

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

// specDefaults is the JSON merge patch (RFC 7396) that makes the spec which is used out of the stored one, "{}" when they are
// equal.
func specDefaults(stored, used *v1beta1.ModelRegistrySpec) (string, error) {
	before, err := json.Marshal(stored)
	if err != nil {
		return "", fmt.Errorf("encoding the stored spec: %w", err)
	}
	after, err := json.Marshal(used)
	if err != nil {
		return "", fmt.Errorf("encoding the spec with its defaults: %w", err)
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return "", fmt.Errorf("comparing the spec with its defaults: %w", err)
	}
	return string(patch), nil
}
