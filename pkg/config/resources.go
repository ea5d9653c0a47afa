package config

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// small is enough for a container of ours, with the given memory. Quotas may ask for all four values.
func small(memory, maxMemory string) corev1.ResourceRequirements {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return corev1.ResourceRequirements{Requests: list("20m", memory), Limits: list("500m", maxMemory)}
}

// resources reads requests and limits. A list that is there replaces the default one, and may be empty.
func (s *section) resources(key string, dst *corev1.ResourceRequirements) {
	child, _ := s.child(key)
	child.quantities("requests", &dst.Requests)
	child.quantities("limits", &dst.Limits)
	if claims, _ := child.take("claims"); claims != nil {
		child.refuse("claims", claims, "absent: claims of devices belong to the pods of users")
	}
	for _, name := range slices.Sorted(maps.Keys(dst.Requests)) {
		request := dst.Requests[name]
		if limit, limited := dst.Limits[name]; limited && request.Cmp(limit) > 0 {
			child.refuse("requests", request.String(), fmt.Sprintf("at most the limit of %s, which is %s", name, limit.String()))
		}
	}
	s.join(child)
}

// quantities reads a list of resources by their names.
func (s *section) quantities(key string, dst *corev1.ResourceList) {
	value, given := s.take(key)
	if !given || value == nil {
		return
	}
	fields, _ := value.(map[string]any) // the type of the file saw to that
	list := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		quantity, err := resource.ParseQuantity(fmt.Sprint(fields[name]))
		if err != nil || quantity.Sign() < 0 {
			s.refuse(key+"."+name, fields[name], "a quantity of Kubernetes that is not negative, such as 100m or 64Mi")
			continue
		}
		list[corev1.ResourceName(name)] = quantity
	}
	*dst = list
}
