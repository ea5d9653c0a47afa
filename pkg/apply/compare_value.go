package apply

// valuesMatch compares a scalar, or an atomic list or map.
func valuesMatch(t node) bool {
	return equal(t.desired, t.live) || t.canonical != nil && equal(t.canonical, t.live)
}

// equal reports whether live is the value that the API server stores for desired. Equal numbers may have different types, zero
// values may be absent, and the API server may add defaults to atomic values.
func equal(desired, live any) bool {
	if live == nil {
		return isZero(desired)
	}
	switch desired := desired.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		return ok && equalMaps(desired, live)
	case []any:
		live, ok := live.([]any)
		return ok && equalLists(desired, live)
	default:
		return equalScalars(desired, live)
	}
}

func equalMaps(desired, live map[string]any) bool {
	for name, v := range desired {
		if !equal(v, live[name]) {
			return false
		}
	}
	for name, v := range live {
		if _, found := desired[name]; !found && !isEmpty(v) && !isDefault(name, v, live) {
			return false
		}
	}
	return true
}

func equalLists(desired, live []any) bool {
	if len(desired) != len(live) {
		return false
	}
	for i := range desired {
		if !equal(desired[i], live[i]) {
			return false
		}
	}
	return true
}

func equalScalars(desired, live any) bool {
	if a, ok := toFloat(desired); ok {
		b, ok := toFloat(live)
		return ok && a == b
	}
	switch desired.(type) {
	case string, bool:
		return desired == live
	default:
		return false
	}
}

// toFloat returns a number of decoded JSON. Integers in objects are far below 2^53.
func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

// isEmpty reports whether a value is nil, or an empty map or list.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

// isZero reports whether the API server may omit a value: a zero value, an empty list, or a map of such values.
func isZero(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, field := range v {
			if !isZero(field) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case float64:
		return v == 0
	default:
		return v == nil
	}
}

// apiDefault is a default that the API server sets in an atomic list or map, which has one field owner.
type apiDefault struct {
	field string
	value any
	// sibling is a field that must exist in the same map.
	sibling string
}

// apiDefaults lists the defaults of the kinds that components apply. A missing entry costs one write without effect for each such object
// after a restart.
var apiDefaults = []apiDefault{
	// NetworkPolicy ports
	{"protocol", "TCP", "port"},
	// pod volumes and environment: ObjectFieldSelector, ResourceFieldSelector, ServiceAccountTokenProjection
	{"apiVersion", "v1", "fieldPath"},
	{"divisor", "0", "resource"},
	{"expirationSeconds", int64(3600), "path"},
	// volumeClaimTemplates
	{"volumeMode", "Filesystem", "accessModes"},
	// RBAC subjects that are users or groups
	{"apiGroup", "rbac.authorization.k8s.io", "kind"},
	// HTTPRoute: parentRefs, backendRefs, matches
	{"group", "gateway.networking.k8s.io", "name"},
	{"kind", "Gateway", "name"},
	{"group", "", "name"},
	{"kind", "Service", "name"},
	{"weight", int64(1), "name"},
	{"type", "PathPrefix", "value"},
	{"type", "Exact", "value"},
	{"path", map[string]any{"type": "PathPrefix", "value": "/"}, "headers"},
	{"matches", []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}}, "backendRefs"},
	// ServiceMonitor relabelings
	{"action", "replace", "targetLabel"},
}

// isDefault reports whether the API server may have set a field of live.
func isDefault(name string, v any, live map[string]any) bool {
	for _, d := range apiDefaults {
		if d.field == name && equal(d.value, v) {
			if _, ok := live[d.sibling]; ok {
				return true
			}
		}
	}
	return false
}
