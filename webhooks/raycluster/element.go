package raycluster

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// element is an entry of a list in a pod template, such as a container.
type element = map[string]any

// elementOf converts an apply configuration.
func elementOf(configuration any) element {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	utilruntime.Must(err) // a typed object always converts
	return fields
}

func elementsOf[T any](configurations []T) []element {
	var elements []element
	for _, configuration := range configurations {
		elements = append(elements, elementOf(configuration))
	}
	return elements
}

// userFields are the fields of injected containers that users may set.
var userFields = []string{"resources", "imagePullPolicy"}

// equalElements reports whether two elements are equal, where an absent field equals its default.
func equalElements(a, b any) bool { return reflect.DeepEqual(normalize(a), normalize(b)) }

// equalContainers is equalElements for injected containers, ignoring userFields and the given fields.
func equalContainers(a, b element, without ...string) bool {
	return equalElements(comparedFields(a, without...), comparedFields(b, without...))
}

func comparedFields(container element, without ...string) element {
	compared := maps.Clone(container)
	for _, field := range userFields {
		delete(compared, field)
	}
	for _, field := range without {
		delete(compared, field)
	}
	return compared
}

// fieldDefaults holds the default of fields by name. A field with its default equals an absent field.
var fieldDefaults = map[string]any{
	"protocol": "TCP", "readOnly": false, "optional": false, "defaultMode": int64(0o644), "apiVersion": "v1",
	"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "recursiveReadOnly": "Disabled",
}

// normalize drops null, empty and default values of fields. It keeps all elements of lists.
func normalize(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for name, field := range value {
			if field = normalize(field); !isEmpty(field) && field != fieldDefaults[name] {
				fields[name] = field
			}
		}
		return fields
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = normalize(value[i])
		}
		return list
	default:
		return value
	}
}

func isEmpty(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.String, reflect.Map, reflect.Slice:
		return v.Len() == 0
	default:
		return false
	}
}

// upsert replaces the first element of the same name in a list and deletes duplicates, or appends the element.
func upsert(fields map[string]any, list string, desired element) {
	upsertWith(fields, list, desired, func(existing element) element {
		if equalElements(existing, desired) {
			return existing
		}
		return desired
	})
}

// upsertContainer is upsert for containers. It keeps userFields of an existing container.
func upsertContainer(fields map[string]any, list string, desired element) {
	upsertWith(fields, list, desired, func(existing element) element {
		if equalContainers(existing, desired) && (!isEmpty(existing["resources"]) || isEmpty(desired["resources"])) {
			return existing
		}
		merged := maps.Clone(desired)
		for _, field := range userFields {
			if !isEmpty(existing[field]) {
				merged[field] = existing[field]
			}
		}
		return merged
	})
}

// upsertWith replaces the first element with the name of desired by the result of replace and deletes duplicates, or appends desired.
func upsertWith(fields map[string]any, list string, desired element, replace func(existing element) element) {
	elements := slices.Clone(nested.List(fields, list))
	found := nested.Indexes(elements, desired["name"])
	if len(found) == 0 {
		fields[list] = append(elements, desired)
		return
	}
	elements[found[0]] = replace(nested.Map(elements[found[0]]))
	for _, i := range slices.Backward(found[1:]) {
		elements = slices.Delete(elements, i, i+1)
	}
	fields[list] = elements
}

// dropElements deletes matching elements from a list. It deletes the list if no element remains.
func dropElements(fields map[string]any, list string, matches func(element) bool) {
	elements := nested.List(fields, list)
	remaining := slices.DeleteFunc(slices.Clone(elements), func(e any) bool {
		found := nested.Map(e)
		return found != nil && matches(found)
	})
	switch len(remaining) {
	case len(elements):
	case 0:
		delete(fields, list)
	default:
		fields[list] = remaining
	}
}

// ensureObject returns the object in a field, and creates it if absent.
func ensureObject(fields map[string]any, name string) map[string]any {
	if fields[name] == nil {
		fields[name] = map[string]any{}
	}
	return nested.Map(fields, name)
}
