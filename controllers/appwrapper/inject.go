package appwrapper

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/quantity"
)

// buildObject returns the object of a component: the template in the namespace of the AppWrapper with its label, and pod templates with the
// additions of Kueue and of the settings. The object holds only plain JSON values and shares nothing with the AppWrapper [D27]. Warnings
// list skipped and changed fields. Every error is permanent.
func buildObject(aw *awv1beta2.AppWrapper, index int, settings Settings) (*unstructured.Unstructured, []string, error) {
	component := &aw.Spec.Components[index]
	u, err := podset.Decode(component)
	if err != nil {
		return nil, nil, err
	}
	if namespace := u.GetNamespace(); namespace != "" && namespace != aw.Namespace {
		return nil, nil, fmt.Errorf("metadata.namespace is %q: leave it out, because an AppWrapper creates objects in its own namespace only, here %q",
			namespace, aw.Namespace)
	}
	u.SetNamespace(aw.Namespace)
	label := map[string]string{awv1beta2.LabelAppWrapper: aw.Name}
	if err := mergeAt(u.Object, "labels", label, "metadata", "labels"); err != nil {
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
		template, err := podset.TemplateAt(u.Object, set.Path)
		if err != nil {
			return nil, nil, err
		}
		warning, err := injectTemplate(template, label, info, settings)
		if err != nil {
			return nil, nil, fmt.Errorf("pod template at %s: %w", set.Path, err)
		}
		if warning != "" {
			warnings = append(warnings, fmt.Sprintf("pod template at %s: %s", set.Path, warning))
		}
	}
	return u, warnings, nil
}

// injectTemplate adds labels, pod set info, scheduler and node affinity to a pod template. It returns a warning about an invalid affinity.
func injectTemplate(template map[string]any, label map[string]string, info awv1beta2.AppWrapperPodSetInfo, settings Settings) (string, error) {
	if err := errors.Join(
		mergeAt(template, "annotations", info.Annotations, "metadata", "annotations"),
		mergeAt(template, "labels", info.Labels, "metadata", "labels"),
		mergeAt(template, "labels", label, "metadata", "labels"),
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
	utilruntime.Must(err) // a typed object always converts
	for _, list := range []string{"tolerations", "schedulingGates"} {
		if err := appendMissing(spec, list, nested.List(plain, list)); err != nil {
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
		return fmt.Sprintf("the pods are not kept away from unhealthy nodes: %v", err), nil
	}
	return "", nil
}

// mergeAt adds entries to the map at the fields, which it creates if absent. If a key has another value, it adds nothing and returns an error
// with the given name.
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
			return fmt.Errorf("conflict updating %s: conflict for key=%s, value1=%v, value2=%s: remove the key from the pod template", name, key, found, entries[key])
		}
	}
	for key, value := range entries {
		object[key] = value
	}
	return nil
}

// appendMissing appends entries that a list lacks.
func appendMissing(spec map[string]any, field string, entries []any) error {
	if len(entries) == 0 {
		return nil
	}
	list, ok := spec[field].([]any)
	if !ok && spec[field] != nil {
		return fmt.Errorf("%s is %v: write a list", field, spec[field])
	}
	for _, entry := range entries {
		if !slices.ContainsFunc(list, func(existing any) bool { return reflect.DeepEqual(existing, entry) }) {
			list = append(list, entry)
		}
	}
	spec[field] = list
	return nil
}

// excludedLabels holds the values of node labels that a node affinity excludes, by label and in the order of the settings.
type excludedLabels map[string][]string

func (l excludedLabels) add(taint config.NodeTaint) {
	if !slices.Contains(l[taint.Key], taint.Value) {
		l[taint.Key] = append(l[taint.Key], taint.Value)
	}
}

// expressions returns the requirements of a node selector term, sorted by label [D29].
func (l excludedLabels) expressions() []corev1.NodeSelectorRequirement {
	var list []corev1.NodeSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(l)) {
		list = append(list, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpNotIn, Values: l[key]})
	}
	return list
}

// injectAffinity avoids nodes with labels that mark a requested resource as unhealthy. It does not change an invalid affinity, or a node
// affinity with an unknown field, and returns an error that names the field.
func injectAffinity(spec map[string]any, autopilot *config.Autopilot) error {
	required, preferred := excludedLabels{}, excludedLabels{}
	for _, name := range slices.Sorted(maps.Keys(autopilot.ResourceTaints)) {
		if !requestsResource(spec, name) {
			continue
		}
		for _, taint := range autopilot.ResourceTaints[name] {
			switch corev1.TaintEffect(taint.Effect) {
			case corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule:
				required.add(taint)
			case corev1.TaintEffectPreferNoSchedule:
				preferred.add(taint)
			}
		}
	}
	if len(required)+len(preferred) == 0 {
		return nil
	}
	if value := spec["affinity"]; value != nil && nested.Map(value) == nil {
		return fmt.Errorf("affinity is %v: write a map", value)
	}
	affinity := map[string]any{}
	maps.Copy(affinity, nested.Map(spec, "affinity"))
	if value := affinity["nodeAffinity"]; value != nil && nested.Map(value) == nil {
		return fmt.Errorf("nodeAffinity is %v: write a map", value)
	}
	var node corev1.NodeAffinity
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(nested.Map(affinity, "nodeAffinity"), &node, true)
	if err != nil {
		return fmt.Errorf("nodeAffinity: %w", err)
	}
	addRequirements(&node, required, preferred, max(1, min(autopilot.PreferNoScheduleWeight, 100)))
	affinity["nodeAffinity"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&node)
	spec["affinity"] = affinity
	return err
}

// addRequirements excludes the labels in required in each required term, or in a new term if there is none, and the labels in preferred in
// an additional preferred term. It does not change a required term without requirements, because such a term matches no node.
func addRequirements(node *corev1.NodeAffinity, required, preferred excludedLabels, weight int32) {
	if len(required) > 0 {
		if node.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			node.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
		}
		selector := node.RequiredDuringSchedulingIgnoredDuringExecution
		for i := range selector.NodeSelectorTerms {
			if term := &selector.NodeSelectorTerms[i]; len(term.MatchExpressions)+len(term.MatchFields) > 0 {
				term.MatchExpressions = append(term.MatchExpressions, required.expressions()...)
			}
		}
		if len(selector.NodeSelectorTerms) == 0 {
			selector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: required.expressions()}}
		}
	}
	if len(preferred) > 0 {
		node.PreferredDuringSchedulingIgnoredDuringExecution = append(node.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
			Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: preferred.expressions()},
		})
	}
}

// requestsResource reports whether a container or init container has a non-zero request or limit of the resource.
func requestsResource(spec map[string]any, resource string) bool {
	for _, kind := range []string{"initContainers", "containers"} {
		for _, container := range nested.List(spec, kind) {
			if isNonZero(nested.At(container, "resources", "requests", resource)) || isNonZero(nested.At(container, "resources", "limits", resource)) {
				return true
			}
		}
	}
	return false
}

// isNonZero reports whether a JSON value is a non-zero quantity.
func isNonZero(value any) bool {
	switch amount := value.(type) {
	case int64:
		return amount != 0
	case float64:
		return amount != 0
	case string:
		parsed, err := quantity.Parse(amount)
		return err == nil && !parsed.IsZero()
	}
	return false
}

// Render returns the components of an AppWrapper as created after Kueue has admitted it. Objects with generateName have no name, because
// the name depends on the UID of the AppWrapper. The additions of Kueue are read from spec.components.podSetInfos. Unknown fields are
// errors.
func Render(settings Settings, object *unstructured.Unstructured) (objects []*unstructured.Unstructured, notes []string, err error) {
	aw := &awv1beta2.AppWrapper{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, aw, true); err != nil {
		return nil, nil, fmt.Errorf("decoding AppWrapper %s: %w", object.GetName(), err)
	}
	if !aw.IsManaged() {
		return nil, []string{"nothing is created: spec.managedBy names another controller"}, nil
	}
	aw.Status = awv1beta2.AppWrapperStatus{}
	if err := initComponentStatus(aw); err != nil {
		return nil, nil, err
	}
	for i := range aw.Spec.Components {
		u, warnings, err := buildObject(aw, i, settings)
		if err != nil {
			return nil, nil, fmt.Errorf("spec.components[%d]: %w", i, err)
		}
		for _, warning := range warnings {
			notes = append(notes, fmt.Sprintf("spec.components[%d]: %s", i, warning))
		}
		u.SetOwnerReferences(append(u.GetOwnerReferences(), metav1.OwnerReference{
			APIVersion: awv1beta2.GroupVersion.String(), Kind: awv1beta2.Kind, Name: aw.Name, UID: aw.UID, Controller: new(true), BlockOwnerDeletion: new(true),
		}))
		objects = append(objects, u)
	}
	if aw.Spec.Suspend {
		notes = append(notes, "the components do not exist while spec.suspend is true: Kueue sets it to false when there is quota")
	}
	return objects, notes, nil
}
