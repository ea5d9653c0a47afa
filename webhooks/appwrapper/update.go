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
	immutable = "attempt to change immutable field"
	recreate  = immutable + ": leave it as it is, or delete the AppWrapper and create it again"
	restore   = immutable + ": leave it as it is"
)

// changes returns the violations of an update. The paths are those that clients know, lower case and all.
func immutableErrors(old, updated *v1beta2.AppWrapper) field.ErrorList {
	var errs field.ErrorList
	refuse := func(path *field.Path) { errs = append(errs, field.Forbidden(path, recreate)) }
	spec := field.NewPath("spec")
	components := spec.Child("components")
	if len(old.Spec.Components) != len(updated.Spec.Components) {
		refuse(components)
		return errs
	}
	for i := range updated.Spec.Components {
		was, is := &old.Spec.Components[i], &updated.Spec.Components[i]
		if !equalTemplates(was.Template.Raw, is.Template.Raw) {
			refuse(components.Index(i).Child("template", "raw"))
		}
		checkPodSets(was.PodSets, is.PodSets, components.Index(i).Child("podsets"), refuse)
	}
	for _, label := range []string{v1beta2.LabelUser, v1beta2.LabelUserID} {
		if old.Labels[label] != updated.Labels[label] {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "labels").Key(label), restore))
		}
	}
	if !ptr.Equal(old.Spec.ManagedBy, updated.Spec.ManagedBy) {
		refuse(spec.Child("managedBy"))
	}
	return errs
}

func checkPodSets(was, is []v1beta2.AppWrapperPodSet, path *field.Path, refuse func(*field.Path)) {
	if len(was) != len(is) {
		refuse(path)
		return
	}
	for j := range is {
		if ptr.Deref(was[j].Replicas, 1) != ptr.Deref(is[j].Replicas, 1) {
			refuse(path.Index(j).Child("replicas"))
		}
		if was[j].Path != is[j].Path {
			refuse(path.Index(j).Child("path"))
		}
	}
}

// sameTemplate compares what two templates say: the order of fields, white space, the notation of numbers and fields that
// are null make no difference. Clients that apply an unchanged object write all of these as they like.
func equalTemplates(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var left, right any
	if kjson.Unmarshal(a, &left) != nil || kjson.Unmarshal(b, &right) != nil {
		return false
	}
	return reflect.DeepEqual(normalize(left), normalize(right))
}

// canonical drops null fields and writes whole numbers in one way. Nulls in lists stay: there they count.
func normalize(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, field := range value {
			if field != nil {
				out[key] = normalize(field)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = normalize(item)
		}
		return out
	case float64:
		// Beyond 2^53 a float does not tell neighbours apart, so it stays what it is.
		if whole := math.Trunc(value); whole == value && math.Abs(value) < 1<<53 {
			return int64(value)
		}
		return value
	default:
		return value
	}
}
