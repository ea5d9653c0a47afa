package appwrapper

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

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
