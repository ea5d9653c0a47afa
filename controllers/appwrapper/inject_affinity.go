package appwrapper

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/podset"
)

// avoided has, for a kind of node affinity, the label values that keep a pod away: by label, in the order of the settings.
type avoided map[string][]string

func (a avoided) add(taint corev1.Taint) {
	if !slices.Contains(a[taint.Key], taint.Value) {
		a[taint.Key] = append(a[taint.Key], taint.Value)
	}
}

// expressions are the requirements of a node selector term, in the order of the labels (D29).
func (a avoided) expressions() []any {
	var list []any
	for _, key := range slices.Sorted(maps.Keys(a)) {
		values := make([]any, 0, len(a[key]))
		for _, value := range a[key] {
			values = append(values, value)
		}
		list = append(list, map[string]any{"key": key, "operator": string(corev1.NodeSelectorOpNotIn), "values": values})
	}
	return list
}

// injectAffinity keeps the pods away from nodes where a resource that they ask for is unwell. An affinity that cannot be
// read is left as it is, and the error says so.
func injectAffinity(spec map[string]any, autopilot *Autopilot) error {
	required, preferred := avoided{}, avoided{}
	for _, name := range slices.Sorted(maps.Keys(autopilot.ResourceTaints)) {
		if !requests(spec, string(name)) {
			continue
		}
		for _, taint := range autopilot.ResourceTaints[name] {
			switch taint.Effect {
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
	affinity, err := mapAt(spec, "affinity")
	if err != nil {
		return err
	}
	node, err := mapAt(affinity, "nodeAffinity")
	if err != nil {
		return err
	}
	if err := inject(node, required, preferred, autopilot.PreferNoScheduleWeight); err != nil {
		return err
	}
	affinity["nodeAffinity"], spec["affinity"] = node, affinity
	return nil
}

// inject changes a node affinity, or nothing of it when there is an error.
func inject(node map[string]any, required, preferred avoided, weight int32) error {
	terms, err := listAt(node, "preferredDuringSchedulingIgnoredDuringExecution")
	if err != nil {
		return err
	}
	if len(required) > 0 {
		if err := require(node, required.expressions); err != nil {
			return err
		}
	}
	if len(preferred) > 0 {
		node["preferredDuringSchedulingIgnoredDuringExecution"] = append(terms, map[string]any{
			"weight":     int64(max(1, min(weight, 100))),
			"preference": map[string]any{"matchExpressions": preferred.expressions()},
		})
	}
	return nil
}

// require adds the expressions to each term that a node may meet, or makes the only term of them. A term without any
// requirement is met by no node, and it stays so.
func require(node map[string]any, expressions func() []any) error {
	const field = "requiredDuringSchedulingIgnoredDuringExecution"
	selector, err := mapAt(node, field)
	if err != nil {
		return err
	}
	terms, err := listAt(selector, "nodeSelectorTerms")
	if err != nil {
		return err
	}
	extended := make([]any, 0, len(terms)+1)
	for i, entry := range terms {
		term, ok := entry.(map[string]any)
		if !ok {
			return fmt.Errorf("nodeSelectorTerms[%d] is %v: write a map", i, entry)
		}
		existing, err := listAt(term, "matchExpressions")
		if err != nil {
			return fmt.Errorf("nodeSelectorTerms[%d]: %w", i, err)
		}
		fields, err := listAt(term, "matchFields")
		if err != nil {
			return fmt.Errorf("nodeSelectorTerms[%d]: %w", i, err)
		}
		if len(existing)+len(fields) > 0 {
			term = maps.Clone(term)
			term["matchExpressions"] = append(slices.Clone(existing), expressions()...)
		}
		extended = append(extended, term)
	}
	if len(terms) == 0 {
		extended = append(extended, map[string]any{"matchExpressions": expressions()})
	}
	selector["nodeSelectorTerms"] = extended
	node[field] = selector
	return nil
}

// mapAt returns the map of a field; absent and null are an empty one, which is not yet part of the object.
func mapAt(object map[string]any, field string) (map[string]any, error) {
	value, ok := object[field].(map[string]any)
	if !ok && object[field] != nil {
		return nil, fmt.Errorf("%s is %v: write a map", field, object[field])
	}
	if !ok {
		value = map[string]any{}
	}
	return value, nil
}

// requests tells whether a container or init container asks for some of the resource, in its requests or its limits.
func requests(spec map[string]any, resourceName string) bool {
	for _, kind := range []string{"initContainers", "containers"} {
		containers, _ := spec[kind].([]any)
		for _, entry := range containers {
			container, _ := entry.(map[string]any)
			resources, _ := container["resources"].(map[string]any)
			for _, side := range []string{"requests", "limits"} {
				amounts, _ := resources[side].(map[string]any)
				if nonZero(amounts[resourceName]) {
					return true
				}
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
