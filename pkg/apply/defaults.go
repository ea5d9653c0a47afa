package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// spellOut writes out what the API server would fill in, where much depends on it: what is not named is not ours, and a stranger's
// change of it would stay unnoticed. A policy that lists no rules denies by that, so the empty list is named as well.
func spellOut(kind schema.GroupKind, object map[string]any) {
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return
	}
	switch kind {
	case schema.GroupKind{Kind: "Service"}:
		spellOutService(spec)
	case schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:
		types, _ := spec["policyTypes"].([]any)
		for direction, rules := range map[string]string{"Ingress": "ingress", "Egress": "egress"} {
			if slices.Contains(types, any(direction)) {
				preset(spec, rules, []any{})
			}
		}
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		preset(spec, "strategy", map[string]any{"type": "RollingUpdate"})
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		preset(spec, "updateStrategy", map[string]any{"type": "RollingUpdate"})
	}
}

func spellOutService(spec map[string]any) {
	preset(spec, "type", "ClusterIP")
	ports, _ := spec["ports"].([]any)
	for _, item := range ports {
		if port, ok := item.(map[string]any); ok {
			preset(port, "protocol", "TCP")
			preset(port, "targetPort", port["port"])
		}
	}
}

// preset sets a field that is not there.
func preset(fields map[string]any, name string, value any) {
	if _, ok := fields[name]; !ok {
		fields[name] = value
	}
}
