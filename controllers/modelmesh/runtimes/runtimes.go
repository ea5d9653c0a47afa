package runtimes

import (
	"fmt"
	"maps"
	"slices"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// invalidSpec begins the messages about runtimes that cannot be served.
const invalidSpec = "Invalid runtime Spec"

// broken is what of a runtime could not be read, as an error.
func broken(r modelmesh.Runtime) error {
	if r.Malformed == "" {
		return nil
	}
	return fmt.Errorf("%s: %s", invalidSpec, r.Malformed)
}

// specs are the specs of runtimes by name.
func specs(runtimes map[string]modelmesh.Runtime) map[string]*v1alpha1.ServingRuntimeSpec {
	out := make(map[string]*v1alpha1.ServingRuntimeSpec, len(runtimes))
	for name, r := range runtimes {
		if r.Object.GetDeletionTimestamp().IsZero() {
			out[name] = r.Spec
		}
	}
	return out
}

// needed tells whether a model of the namespace can be served by a runtime with the given labels.
func needed(models []mm.Model, labels []string) bool {
	return slices.ContainsFunc(models, func(m mm.Model) bool { return mm.Supports(labels, m.Label()) })
}

func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
