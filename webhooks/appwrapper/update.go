package appwrapper

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

const immutable = "attempt to change immutable field"

// changes returns the violations of an update. The paths are those that clients know, lower case and all.
func changes(old, updated *v1beta2.AppWrapper) field.ErrorList {
	var errs field.ErrorList
	refuse := func(path *field.Path) { errs = append(errs, field.Forbidden(path, immutable)) }
	spec := field.NewPath("spec")
	components := spec.Child("components")
	if len(old.Spec.Components) != len(updated.Spec.Components) {
		refuse(components)
		return errs
	}
	for i := range updated.Spec.Components {
		was, is := &old.Spec.Components[i], &updated.Spec.Components[i]
		if !sameTemplate(was.Template.Raw, is.Template.Raw) {
			refuse(components.Index(i).Child("template", "raw"))
		}
		changedPodSets(was.PodSets, is.PodSets, components.Index(i).Child("podsets"), refuse)
	}
	for _, label := range []string{v1beta2.LabelUser, v1beta2.LabelUserID} {
		if old.Labels[label] != updated.Labels[label] {
			refuse(field.NewPath("metadata", "labels").Key(label))
		}
	}
	if !ptr.Equal(old.Spec.ManagedBy, updated.Spec.ManagedBy) {
		refuse(spec.Child("managedBy"))
	}
	return errs
}

func changedPodSets(was, is []v1beta2.AppWrapperPodSet, path *field.Path, refuse func(*field.Path)) {
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
