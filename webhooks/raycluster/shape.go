package raycluster

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

const (
	wantObject  = "must be an object"
	wantObjects = "must be a list of objects"
)

// shapeErrors refuses what would be overlooked otherwise: values of another type on the way to the pod templates. The schema
// of the CRD says the same, but later.
func shapeErrors(c raycluster.Cluster) field.ErrorList {
	s := &shape{}
	root := c.Object()
	metadata := s.object(root, nil, "metadata")
	s.object(metadata, field.NewPath("metadata"), "annotations")
	if root["metadata"] == nil {
		s.errs = append(s.errs, field.Required(field.NewPath("metadata"), wantObject))
	}
	spec := s.object(root, nil, "spec")
	at := field.NewPath("spec")
	s.container(s.object(spec, at, "autoscalerOptions"), at.Child("autoscalerOptions"))
	s.template(s.object(spec, at, "headGroupSpec"), at.Child("headGroupSpec"))
	for i, group := range s.objects(spec, at, "workerGroupSpecs") {
		s.template(group, at.Child("workerGroupSpecs", strconv.Itoa(i)))
	}
	return s.errs
}

type shape struct{ errs field.ErrorList }

func (s *shape) template(group map[string]any, at *field.Path) {
	template := s.object(group, at, "template")
	pod := s.object(template, at.Child("template"), "spec")
	at = at.Child("template", "spec")
	containers := s.objects(pod, at, "containers")
	if len(containers) > 0 {
		s.container(containers[0], at.Child("containers", "0"))
	}
	s.objects(pod, at, "initContainers")
	s.objects(pod, at, "volumes")
	if account := pod["serviceAccountName"]; account != nil {
		if _, isText := account.(string); !isText {
			s.errs = append(s.errs, field.Invalid(at.Child("serviceAccountName"), account, "must be a string"))
		}
	}
}

func (s *shape) container(fields map[string]any, at *field.Path) {
	s.objects(fields, at, "env")
	s.objects(fields, at, "volumeMounts")
}

// object returns a field that is an object; nil when it is absent or something else.
func (s *shape) object(parent map[string]any, at *field.Path, name string) map[string]any {
	value := parent[name]
	fields, isObject := value.(map[string]any)
	if value != nil && !isObject {
		s.errs = append(s.errs, field.Invalid(childOf(at, name), kindOf(value), wantObject))
	}
	return fields
}

// objects returns a field that is a list of objects.
func (s *shape) objects(parent map[string]any, at *field.Path, name string) []map[string]any {
	value := parent[name]
	list, isList := value.([]any)
	var objects []map[string]any
	for i, entry := range list {
		fields, isObject := entry.(map[string]any)
		if !isObject {
			s.errs = append(s.errs, field.Invalid(childOf(at, name).Child(strconv.Itoa(i)), kindOf(entry), wantObject))
		}
		objects = append(objects, fields)
	}
	if value != nil && !isList {
		s.errs = append(s.errs, field.Invalid(childOf(at, name), kindOf(value), wantObjects))
	}
	return objects
}

func childOf(at *field.Path, name string) *field.Path {
	if at == nil {
		return field.NewPath(name)
	}
	return at.Child(name)
}

// kindOf is what a message shows of a value of the wrong type.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}
