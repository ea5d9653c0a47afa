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

// avoided has, for a kind of node affinity, the label values that keep a pod away: by label, in the order of the settings.
type avoided map[string][]string

func (a avoided) add(taint config.NodeTaint) {
	if !slices.Contains(a[taint.Key], taint.Value) {
		a[taint.Key] = append(a[taint.Key], taint.Value)
	}
}

// expressions are the requirements of a node selector term, in the order of the labels (D29).
func (a avoided) expressions() []corev1.NodeSelectorRequirement {
	var list []corev1.NodeSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(a)) {
		list = append(list, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpNotIn, Values: a[key]})
	}
	return list
}

// injectAffinity keeps the pods away from nodes where a resource that they ask for is unwell. An affinity that cannot be
// read, or has a field that is not known here, is left as it is, and the error names it.
func injectAffinity(spec map[string]any, autopilot *config.Autopilot) error {
	required, preferred := avoided{}, avoided{}
	for _, name := range slices.Sorted(maps.Keys(autopilot.ResourceTaints)) {
		if !requests(spec, name) {
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
	if given := spec["affinity"]; given != nil && nested.Map(given) == nil {
		return fmt.Errorf("affinity is %v: write a map", given)
	}
	affinity := map[string]any{}
	maps.Copy(affinity, nested.Map(spec, "affinity"))
	if given := affinity["nodeAffinity"]; given != nil && nested.Map(given) == nil {
		return fmt.Errorf("nodeAffinity is %v: write a map", given)
	}
	var node corev1.NodeAffinity
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(nested.Map(affinity, "nodeAffinity"), &node, true)
	if err != nil {
		return fmt.Errorf("nodeAffinity: %w", err)
	}
	avoid(&node, required, preferred, max(1, min(autopilot.PreferNoScheduleWeight, 100)))
	affinity["nodeAffinity"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&node)
	spec["affinity"] = affinity
	return err
}

// avoid adds the requirements to each term that a node may meet, or makes the only term of them. A term without any
// requirement is met by no node, and it stays so.
func avoid(node *corev1.NodeAffinity, required, preferred avoided, weight int32) {
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

// requests tells whether a container or init container asks for some of the resource, in its requests or its limits.
func requests(spec map[string]any, resource string) bool {
	for _, kind := range []string{"initContainers", "containers"} {
		for _, container := range nested.List(spec, kind) {
			if nonZero(nested.At(container, "resources", "requests", resource)) || nonZero(nested.At(container, "resources", "limits", resource)) {
				return true
			}
		}
	}
	return false
}

// nonZero tells whether the JSON value of a quantity is one, and not zero.
func nonZero(value any) bool {
	switch amount := value.(type) {
	case int64:
		return amount != 0
	case float64:
		return amount != 0
	case string:
		quantity, err := podset.ParseQuantity(amount)
		return err == nil && !quantity.IsZero()
	}
	return false
}

// Render returns the components of an AppWrapper as they are created when it is admitted, in their order. Names that a template leaves open
// are completed from the UID, which an AppWrapper outside a cluster does not have. What Kueue adds is in spec.components.podSetInfos
// once there is quota. Unknown fields are errors.
func Render(settings Settings, object *unstructured.Unstructured) (objects []*unstructured.Unstructured, notes []string, err error) {
	aw := &awv1beta2.AppWrapper{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, aw, true); err != nil {
		return nil, nil, fmt.Errorf("decoding AppWrapper %s: %w", object.GetName(), err)
	}
	if !aw.Ours() {
		return nil, []string{"nothing is created: spec.managedBy names another controller"}, nil
	}
	aw.Status = awv1beta2.AppWrapperStatus{}
	if err := fillIn(aw); err != nil {
		return nil, nil, err
	}
	for i := range aw.Spec.Components {
		u, warnings, err := instantiate(aw, i, settings)
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
		notes = append(notes, "nothing of this exists while spec.suspend is true: Kueue sets it to false when there is quota")
	}
	return objects, notes, nil
}
