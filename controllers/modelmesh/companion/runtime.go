package companion

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// candidate is a runtime of either kind that may serve a model.
type candidate struct {
	meta *metav1.ObjectMeta
	spec *v1alpha1.ServingRuntimeSpec
}

// serving returns the annotations of the runtime that serves a model: the one that it names, else the newest that supports it, those
// of the namespace before those of the cluster; nil when there is none. A runtime of the namespace hides one of the cluster that has
// its name.
func serving(model mm.Model, namespaced []v1alpha1.ServingRuntime, cluster []v1alpha1.ClusterServingRuntime, restProxy bool) map[string]string {
	var own, common []candidate
	hidden := map[string]bool{}
	for i := range namespaced {
		own = append(own, candidate{&namespaced[i].ObjectMeta, &namespaced[i].Spec})
		hidden[namespaced[i].Name] = true
	}
	for i := range cluster {
		if !hidden[cluster[i].Name] {
			common = append(common, candidate{&cluster[i].ObjectMeta, &cluster[i].Spec})
		}
	}
	for _, group := range [][]candidate{own, common} {
		group = slices.DeleteFunc(group, func(c candidate) bool {
			return !mm.Serves(c.spec) || !mm.Supports(mm.Labels(c.meta.Name, c.spec, restProxy), model.Label())
		})
		if len(group) > 0 {
			return annotationsOf(slices.MaxFunc(group, byAge).meta)
		}
	}
	return nil
}

// byAge puts newer ones later; of equal age the one whose name comes first counts as newer.
func byAge(a, b candidate) int {
	if c := a.meta.CreationTimestamp.Compare(b.meta.CreationTimestamp.Time); c != 0 {
		return c
	}
	return strings.Compare(b.meta.Name, a.meta.Name)
}

// annotationsOf is never nil.
func annotationsOf(meta *metav1.ObjectMeta) map[string]string {
	if meta.Annotations == nil {
		return map[string]string{}
	}
	return meta.Annotations
}
