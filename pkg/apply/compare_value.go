package apply

// sameValue compares what is owned as a whole: a single value, or an atomic list or map.
func sameValue(t triple) bool {
	return equal(t.want, t.live) || t.canon != nil && equal(t.canon, t.live)
}

// equal says whether live is what the API server makes of want: numbers are equal when they mean the same, zero
// values may be missing, and what the API server adds inside atomic values may be there.
func equal(want, live any) bool {
	if live == nil {
		return isZero(want)
	}
	switch want := want.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		return ok && equalMaps(want, live)
	case []any:
		live, ok := live.([]any)
		return ok && equalLists(want, live)
	default:
		return equalScalars(want, live)
	}
}

func equalMaps(want, live map[string]any) bool {
	for name, v := range want {
		if !equal(v, live[name]) {
			return false
		}
	}
	for name, v := range live {
		if _, wanted := want[name]; !wanted && !isEmpty(v) && !isDefault(name, v, live) {
			return false
		}
	}
	return true
}

func equalLists(want, live []any) bool {
	if len(want) != len(live) {
		return false
	}
	for i := range want {
		if !equal(want[i], live[i]) {
			return false
		}
	}
	return true
}

func equalScalars(want, live any) bool {
	if a, ok := number(want); ok {
		b, ok := number(live)
		return ok && a == b
	}
	switch want.(type) {
	case string, bool:
		return want == live
	default:
		return false
	}
}

// number reads the forms that numbers take in decoded JSON. Integers of objects stay far below 2^53.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

// isEmpty says that a value is nothing, or a map or list without content.
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

// isZero says that a value is one that the API server may leave out of an object. A map of nothing but such values
// is one too.
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

// apiDefault is a value that the API server adds inside an atomic list or map, where one field owner holds all.
type apiDefault struct {
	field string
	value any
	// beside names a field that stands next to it.
	beside string
}

// apiDefaults lists those of the kinds that components write. One that is missing here costs one write without
// effect after a restart, for each object that has it.
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

// isDefault says whether a field of live may have been added by the API server.
func isDefault(name string, v any, live map[string]any) bool {
	for _, d := range apiDefaults {
		if d.field == name && equal(d.value, v) {
			if _, ok := live[d.beside]; ok {
				return true
			}
		}
	}
	return false
}
