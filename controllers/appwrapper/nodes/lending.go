package nodes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// unavailable sums up what nodes cannot offer.
func unavailable(nodes []corev1.Node, taints Taints) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range nodes {
		for name, amount := range healthOf(&nodes[i], taints).unavailable {
			total := sum[name]
			total.Add(amount)
			sum[name] = total
		}
	}
	return sum
}

// lend sets, in the spec of a ClusterQueue, how much may be lent of each resource of the first flavor of the first resource
// group: what is left of the nominal quota without the unavailable amount, or no limit when all of it is there. It tells
// whether anything changed. The object must not be shared.
func lend(queue *unstructured.Unstructured, missing corev1.ResourceList) (bool, error) {
	changed := false
	for _, entry := range nested.List(queue.Object, "spec", "resourceGroups", "0", "flavors", "0", "resources") {
		quota := nested.Map(entry)
		if quota == nil {
			continue
		}
		name := nested.Text(quota, "name")
		moved, err := lendOne(quota, missing[corev1.ResourceName(name)])
		if err != nil {
			return false, fmt.Errorf("quota of %s in ClusterQueue %s: %w", name, queue.GetName(), err)
		}
		changed = changed || moved
	}
	return changed, nil
}

// lendOne sets the limit of one resource.
func lendOne(quota map[string]any, missing resource.Quantity) (bool, error) {
	const field = "lendingLimit"
	if missing.Sign() <= 0 {
		had := quota[field] != nil
		delete(quota, field)
		return had, nil
	}
	limit, err := amountOf(quota["nominalQuota"])
	if err != nil {
		return false, fmt.Errorf("nominalQuota: %w", err)
	}
	limit.Sub(missing)
	if limit.Sign() < 0 {
		limit = resource.Quantity{}
	}
	if quota[field] != nil {
		if before, err := amountOf(quota[field]); err == nil && sameAmount(before, limit) {
			return false, nil
		}
	}
	quota[field] = limit.String()
	return true, nil
}

// amountOf reads a quantity in JSON.
func amountOf(value any) (resource.Quantity, error) {
	switch v := value.(type) {
	case int64:
		return *resource.NewQuantity(v, resource.DecimalSI), nil
	case string:
		return podset.ParseQuantity(v)
	}
	return resource.Quantity{}, fmt.Errorf("%v is no quantity", value)
}

// cohort tells whether the queue has other queues to lend to; Kueue refuses a lending limit otherwise.
func cohort(queue *unstructured.Unstructured) bool {
	return nested.Text(queue.Object, "spec", "cohortName") != "" || nested.Text(queue.Object, "spec", "cohort") != ""
}
