package modelcatalog

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

// standing says why a Catalog is not the one in charge; the zero value when it is. The webhook refuses most of this, but objects
// may have been stored before it was there.
func standing(c *aihubv1alpha1.Catalog, all []aihubv1alpha1.Catalog, namespace string) serving.State {
	problem := serving.State{Status: metav1.ConditionFalse, Reason: ReasonMisplaced}
	switch {
	case c.Name != aihubv1alpha1.CatalogName:
		problem.Message = fmt.Sprintf("a Catalog must be named %q; delete this one, and create one of that name if there is none", aihubv1alpha1.CatalogName)
		return problem
	case namespace != "" && c.Namespace != namespace:
		problem.Message = fmt.Sprintf("catalogs belong into namespace %s (REGISTRIES_NAMESPACE); delete this one and create it there", namespace)
		return problem
	}
	if first := inCharge(all, namespace); first != nil && first.UID != c.UID {
		problem.Reason = ReasonNotInCharge
		problem.Message = fmt.Sprintf("there is one catalog in a cluster, and that of namespace %s was there first; delete one of them", first.Namespace)
		return problem
	}
	return serving.State{}
}

// inCharge is the oldest Catalog that is to stay and may work at all; nil when there is none.
func inCharge(all []aihubv1alpha1.Catalog, namespace string) *aihubv1alpha1.Catalog {
	var able []*aihubv1alpha1.Catalog
	for i := range all {
		c := &all[i]
		if c.DeletionTimestamp.IsZero() && c.Name == aihubv1alpha1.CatalogName && (namespace == "" || c.Namespace == namespace) {
			able = append(able, c)
		}
	}
	if len(able) == 0 {
		return nil
	}
	return slices.MinFunc(able, func(a, b *aihubv1alpha1.Catalog) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace))
	})
}
