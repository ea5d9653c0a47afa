package appwrapper

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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
	switch u.GetNamespace() {
	case "":
		u.SetNamespace(aw.Namespace)
	case aw.Namespace:
	default:
		return nil, nil, fmt.Errorf("metadata.namespace is %q: leave it out, because an AppWrapper creates objects in its own namespace only, here %q",
			u.GetNamespace(), aw.Namespace)
	}
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
	if err := mergeAt(template, "annotations", info.Annotations, "metadata", "annotations"); err != nil {
		return "", err
	}
	for _, labels := range []map[string]string{info.Labels, ours} {
		if err := mergeAt(template, "labels", labels, "metadata", "labels"); err != nil {
			return "", err
		}
	}
	spec, ok := template["spec"].(map[string]any)
	if !ok {
		return "", fmt.Errorf("spec is %v: write a pod spec", template["spec"])
	}
	if err := mergeAt(spec, "nodeSelector", info.NodeSelector, "nodeSelector"); err != nil {
		return "", err
	}
	if err := appendTolerations(spec, info); err != nil {
		return "", err
	}
	if err := appendGates(spec, info); err != nil {
		return "", err
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

// listAt returns the list of a field; absent and null are an empty one.
func listAt(object map[string]any, field string) ([]any, error) {
	list, ok := object[field].([]any)
	if !ok && object[field] != nil {
		return nil, fmt.Errorf("%s is %v: write a list", field, object[field])
	}
	return list, nil
}

func appendTolerations(spec map[string]any, info awv1beta2.AppWrapperPodSetInfo) error {
	if len(info.Tolerations) == 0 {
		return nil
	}
	list, err := listAt(spec, "tolerations")
	if err != nil {
		return err
	}
	for i := range info.Tolerations {
		plain, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&info.Tolerations[i])
		if err != nil {
			return fmt.Errorf("tolerations[%d] of the pod set info: %w", i, err)
		}
		list = append(list, plain)
	}
	spec["tolerations"] = list
	return nil
}

func appendGates(spec map[string]any, info awv1beta2.AppWrapperPodSetInfo) error {
	if len(info.SchedulingGates) == 0 {
		return nil
	}
	list, err := listAt(spec, "schedulingGates")
	if err != nil {
		return err
	}
	for _, gate := range info.SchedulingGates {
		known := slices.ContainsFunc(list, func(entry any) bool {
			return nested.At(entry, "name") == gate.Name
		})
		if !known {
			list = append(list, map[string]any{"name": gate.Name})
		}
	}
	spec["schedulingGates"] = list
	return nil
}
