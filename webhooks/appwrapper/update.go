package appwrapper

import (
	"bytes"
	"math"
	"reflect"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

const (
	immutableMessage = "attempt to change immutable field"
	recreateMessage  = immutableMessage + ": leave it as it is, or delete the AppWrapper and create it again"
	restoreMessage   = immutableMessage + ": leave it as it is"
)

// immutableErrors returns an error for each change of an immutable field, or only one if the number of components changes. Clients depend
// on the spelling of the paths.
func immutableErrors(old, updated *v1beta2.AppWrapper) field.ErrorList {
	var errs field.ErrorList
	reject := func(path *field.Path) { errs = append(errs, field.Forbidden(path, recreateMessage)) }
	spec := field.NewPath("spec")
	components := spec.Child("components")
	if len(old.Spec.Components) != len(updated.Spec.Components) {
		reject(components)
		return errs
	}
	for i := range updated.Spec.Components {
		stored, submitted := &old.Spec.Components[i], &updated.Spec.Components[i]
		if !equalTemplates(stored.Template.Raw, submitted.Template.Raw) {
			reject(components.Index(i).Child("template", "raw"))
		}
		checkPodSets(stored.PodSets, submitted.PodSets, components.Index(i).Child("podsets"), reject)
	}
	for _, label := range []string{v1beta2.LabelUser, v1beta2.LabelUserID} {
		if old.Labels[label] != updated.Labels[label] {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels").Key(label), restoreMessage))
		}
	}
	if !ptr.Equal(old.Spec.ManagedBy, updated.Spec.ManagedBy) {
		reject(spec.Child("managedBy"))
	}
	return errs
}

func checkPodSets(stored, submitted []v1beta2.AppWrapperPodSet, path *field.Path, reject func(*field.Path)) {
	if len(stored) != len(submitted) {
		reject(path)
		return
	}
	for j := range submitted {
		if ptr.Deref(stored[j].Replicas, 1) != ptr.Deref(submitted[j].Replicas, 1) {
			reject(path.Index(j).Child("replicas"))
		}
		if stored[j].Path != submitted[j].Path {
			reject(path.Index(j).Child("path"))
		}
	}
}

// equalTemplates reports whether two templates are equal apart from the order of fields, white space, the notation of numbers and null fields,
// which clients may write differently when they apply an unchanged object.
func equalTemplates(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var decodedA, decodedB any
	if kjson.Unmarshal(a, &decodedA) != nil || kjson.Unmarshal(b, &decodedB) != nil {
		return false
	}
	return reflect.DeepEqual(normalize(decodedA), normalize(decodedB))
}

// normalize drops null fields and converts integral numbers to int64. It keeps null items of lists, because they are significant.
func normalize(value any) any {
	switch value := value.(type) {
	case map[string]any:
		normalized := make(map[string]any, len(value))
		for key, field := range value {
			if field != nil {
				normalized[key] = normalize(field)
			}
		}
		return normalized
	case []any:
		normalized := make([]any, len(value))
		for i, item := range value {
			normalized[i] = normalize(item)
		}
		return normalized
	case float64:
		// Beyond 2^53 floats do not represent all integers.
		if math.Trunc(value) == value && math.Abs(value) < 1<<53 {
			return int64(value)
		}
		return value
	default:
		return value
	}
}
