package appwrapper

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// instantiate makes the object of a component: the template in the namespace of the AppWrapper, with its label, and in each
// pod template what Kueue and the settings add. The object holds plain JSON values only and shares nothing with the
// AppWrapper (D27). The second result has a sentence for each thing that was left undone, or is not as it is written. Every error is final: the
// template or the pod sets would have to be others.
func instantiate(aw *awv1beta2.AppWrapper, index int, settings Settings) (*unstructured.Unstructured, []string, error) {
	component := &aw.Spec.Components[index]
	u, err := podset.Decode(component)
	if err != nil {
		return nil, nil, err
	}
	if given := u.GetNamespace(); given != "" && given != aw.Namespace {
		return nil, nil, fmt.Errorf("metadata.namespace is %q: leave it out, because an AppWrapper creates objects in its own namespace only, here %q",
			given, aw.Namespace)
	}
	u.SetNamespace(aw.Namespace)
	ours := map[string]string{awv1beta2.LabelAppWrapper: aw.Name}
	if err := mergeAt(u.Object, "labels", ours, "metadata", "labels"); err != nil {
		return nil, nil, err
	}
	var warnings []string
	if raised := podset.RaiseTTL(u); raised != "" {
		warnings = append(warnings, raised)
	}
	for i, set := range aw.Status.ComponentStatus[index].PodSets {
		var info awv1beta2.AppWrapperPodSetInfo
		if i < len(component.PodSetInfos) {
			info = component.PodSetInfos[i]
		}
		template, err := podset.At(u.Object, set.Path)
		if err != nil {
			return nil, nil, err
		}
		warning, err := injectTemplate(template, ours, info, settings)
		if err != nil {
			return nil, nil, fmt.Errorf("pod template at %s: %w", set.Path, err)
		}
		if warning != "" {
			warnings = append(warnings, fmt.Sprintf("pod template at %s: %s", set.Path, warning))
		}
	}
	return u, warnings, nil
}

// injectTemplate adds to one pod template.
func injectTemplate(template map[string]any, ours map[string]string, info awv1beta2.AppWrapperPodSetInfo, settings Settings) (string, error) {
	if err := errors.Join(
		mergeAt(template, "annotations", info.Annotations, "metadata", "annotations"),
		mergeAt(template, "labels", info.Labels, "metadata", "labels"),
		mergeAt(template, "labels", ours, "metadata", "labels"),
	); err != nil {
		return "", err
	}
	spec, ok := template["spec"].(map[string]any)
	if !ok {
		return "", fmt.Errorf("spec is %v: write a pod spec", template["spec"])
	}
	if err := mergeAt(spec, "nodeSelector", info.NodeSelector, "nodeSelector"); err != nil {
		return "", err
	}
	plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&info)
	utilruntime.Must(err) // it has the form of a type of ours
	for _, list := range []string{"tolerations", "schedulingGates"} {
		if err := appendTo(spec, list, nested.List(plain, list)); err != nil {
			return "", err
		}
	}
	if name := spec["schedulerName"]; settings.SchedulerName != "" && (name == nil || name == "") {
		spec["schedulerName"] = settings.SchedulerName
	}
	if settings.Autopilot == nil || !settings.Autopilot.InjectAntiAffinities {
		return "", nil
	}
	if err := injectAffinity(spec, settings.Autopilot); err != nil {
		return fmt.Sprintf("nothing was added to keep pods away from unwell nodes: %v", err), nil
	}
	return "", nil
}

// mergeAt adds entries to the map below the fields, which is made when it is absent. A key that has another value there is a
// conflict, and nothing is added. The name is for messages.
func mergeAt(object map[string]any, name string, entries map[string]string, fields ...string) error {
	if len(entries) == 0 {
		return nil
	}
	for _, field := range fields {
		if nested.Map(object, field) == nil {
			if object[field] != nil {
				return fmt.Errorf("%s is %v: write a map", field, object[field])
			}
			object[field] = map[string]any{}
		}
		object = nested.Map(object, field)
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if found, ok := object[key]; ok && found != entries[key] {
			return fmt.Errorf("conflict updating %s: conflict for key=%s, value1=%v, value2=%s", name, key, found, entries[key])
		}
	}
	for key, value := range entries {
		object[key] = value
	}
	return nil
}

// appendTo adds the entries that a list does not have yet; absent and null are an empty list.
func appendTo(spec map[string]any, field string, entries []any) error {
	if len(entries) == 0 {
		return nil
	}
	list, ok := spec[field].([]any)
	if !ok && spec[field] != nil {
		return fmt.Errorf("%s is %v: write a list", field, spec[field])
	}
	for _, entry := range entries {
		if !slices.ContainsFunc(list, func(given any) bool { return reflect.DeepEqual(given, entry) }) {
			list = append(list, entry)
		}
	}
	spec[field] = list
	return nil
}
