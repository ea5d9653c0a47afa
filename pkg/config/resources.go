package config

import (
	"fmt"

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

// readResources reads requests and limits. A list that is there replaces the default one, and may be empty.
func readResources(value any, path string, to *corev1.ResourceRequirements) error {
	fields, _ := value.(map[string]any) // the decoder of the file has checked the types
	if claims := fields["claims"]; claims != nil {
		return fmt.Errorf("%s.claims: must be absent: claims of devices belong to the pods of users", path)
	}
	for _, key := range []string{"limits", "requests"} {
		list := map[string]*corev1.ResourceList{"requests": &to.Requests, "limits": &to.Limits}[key]
		quantities, _ := fields[key].(map[string]any)
		if quantities == nil {
			continue
		}
		*list = corev1.ResourceList{}
		for _, name := range sortedKeys(quantities) {
			text := fmt.Sprint(quantities[name])
			quantity, err := resource.ParseQuantity(text)
			if err != nil || quantity.Sign() < 0 {
				return fmt.Errorf("%s.%s.%s %q: must be a quantity of Kubernetes that is not negative, such as 100m or 64Mi", path, key, name, text)
			}
			(*list)[corev1.ResourceName(name)] = quantity
		}
	}
	for _, name := range sortedKeys(to.Requests) {
		request := to.Requests[name]
		if limit, limited := to.Limits[name]; limited && request.Cmp(limit) > 0 {
			return fmt.Errorf("%s.requests %q: must be at most the limit of %s, which is %s", path, request.String(), name, limit.String())
		}
	}
	return nil
}
