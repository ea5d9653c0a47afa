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

// elementOf is an apply configuration as an element.
func elementOf(configuration any) element {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	utilruntime.Must(err) // it has the form of a type of Kubernetes
	return fields
}

func elementsOf[T any](configurations []T) []element {
	var elements []element
	for _, configuration := range configurations {
		elements = append(elements, elementOf(configuration))
	}
	return elements
}

// ofUsers are the fields of our containers that users may set.
var userFields = []string{"resources", "imagePullPolicy"}

// same compares two elements as Kubernetes understands them: what is absent counts as its default.
func equalElements(a, b any) bool { return reflect.DeepEqual(normalize(a), normalize(b)) }

// sameContainer is same for containers of ours, without what their user may set, and without the given fields.
func equalContainers(a, b element, without ...string) bool {
	return equalElements(comparedFields(a, without...), comparedFields(b, without...))
}

func comparedFields(container element, without ...string) element {
	rest := maps.Clone(container)
	for _, field := range userFields {
		delete(rest, field)
	}
	for _, field := range without {
		delete(rest, field)
	}
	return rest
}

// defaults are values that mean the same as nothing.
var defaults = map[string]any{
	"protocol": "TCP", "readOnly": false, "optional": false, "defaultMode": int64(0o644), "apiVersion": "v1",
	"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "recursiveReadOnly": "Disabled",
}

// normal drops nulls, empty values and defaults of fields. Elements of lists stay.
func normalize(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for name, field := range value {
			if field = normalize(field); !empty(field) && field != defaults[name] {
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

func empty(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.String, reflect.Map, reflect.Slice:
		return v.Len() == 0
	default:
		return false
	}
}

// upsert puts an element into a list of an object, where the first of its name stands or at the end; further ones of the name go.
func upsert(fields map[string]any, list string, wanted element) {
	upsertAs(fields, list, wanted, func(present element) element {
		if equalElements(present, wanted) {
			return present
		}
		return wanted
	})
}

// upsertContainer is upsert for containers: what their user may set stays.
func upsertContainer(fields map[string]any, list string, wanted element) {
	upsertAs(fields, list, wanted, func(present element) element {
		if equalContainers(present, wanted) && (!empty(present["resources"]) || empty(wanted["resources"])) {
			return present
		}
		merged := maps.Clone(wanted)
		for _, field := range userFields {
			if !empty(present[field]) {
				merged[field] = present[field]
			}
		}
		return merged
	})
}

func upsertAs(fields map[string]any, list string, wanted element, instead func(present element) element) {
	elements := slices.Clone(nested.List(fields, list))
	found := nested.Indexes(elements, wanted["name"])
	if len(found) == 0 {
		fields[list] = append(elements, wanted)
		return
	}
	elements[found[0]] = instead(nested.Map(elements[found[0]]))
	for _, i := range slices.Backward(found[1:]) {
		elements = slices.Delete(elements, i, i+1)
	}
	fields[list] = elements
}

// drop takes those elements out of a list of an object that are ours, and the list with its last element.
func dropElements(fields map[string]any, list string, ours func(element) bool) {
	before := nested.List(fields, list)
	rest := slices.DeleteFunc(slices.Clone(before), func(e any) bool {
		found := nested.Map(e)
		return found != nil && ours(found)
	})
	switch len(rest) {
	case len(before):
	case 0:
		delete(fields, list)
	default:
		fields[list] = rest
	}
}

// child is the object in a field of another one, which is made when it is absent.
func child(fields map[string]any, name string) map[string]any {
	if fields[name] == nil {
		fields[name] = map[string]any{}
	}
	return nested.Map(fields, name)
}
