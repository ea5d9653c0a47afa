package openshift

import (
	"maps"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// serving returns the annotations of the runtime that serves a model: the one that it names, else the newest that supports it, those
// of the namespace before those of the cluster; nil when there is none.
func serving(model mm.Model, runtimes map[string]modelmesh.Runtime, restProxy bool) map[string]string {
	candidates := maps.Clone(runtimes)
	maps.DeleteFunc(candidates, func(name string, r modelmesh.Runtime) bool {
		return !mm.Serves(r.Spec) || !mm.Supports(mm.Labels(name, r.Spec, restProxy), model.Label())
	})
	if len(candidates) == 0 {
		return nil
	}
	if annotations := slices.MaxFunc(slices.Collect(maps.Values(candidates)), byPrecedence).Object.GetAnnotations(); annotations != nil {
		return annotations
	}
	return map[string]string{}
}

// byPrecedence puts the runtime that serves later: one of the namespace, the newer one; of equal age the one whose name comes first.
func byPrecedence(a, b modelmesh.Runtime) int {
	if a, b := a.Object.GetNamespace(), b.Object.GetNamespace(); (a == "") != (b == "") {
		return strings.Compare(a, b)
	}
	if c := a.Object.GetCreationTimestamp().Compare(b.Object.GetCreationTimestamp().Time); c != 0 {
		return c
	}
	return strings.Compare(b.Object.GetName(), a.Object.GetName())
}
