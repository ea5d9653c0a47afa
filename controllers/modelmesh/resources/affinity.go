package resources

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// affinity is that of the runtime, bound to the architectures that the images of ModelMesh exist for. Terms are alternatives, so
// the architectures have to stand in each of them; the original made them one more alternative.
func (p *pod) affinity() (*corev1ac.AffinityApplyConfiguration, error) {
	affinity := &corev1.Affinity{}
	if p.Spec.Affinity != nil {
		affinity = p.Spec.Affinity.DeepCopy()
	}
	if architectures := p.Settings.RuntimeArchitectures; len(architectures) > 0 {
		p.bind(affinity, corev1.NodeSelectorRequirement{
			Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: architectures,
		})
	}
	if *affinity == (corev1.Affinity{}) {
		return nil, nil
	}
	config, err := resources.Apply[corev1ac.AffinityApplyConfiguration](affinity)
	if err != nil {
		return nil, fmt.Errorf("spec.affinity: %w", err)
	}
	return config, nil
}

func (p *pod) bind(affinity *corev1.Affinity, to corev1.NodeSelectorRequirement) {
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{}
	}
	terms := &(*required).NodeSelectorTerms
	if len(*terms) == 0 || p.original() {
		*terms = append(*terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{to}})
		return
	}
	for i := range *terms {
		term := &(*terms)[i]
		empty := len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 // it matches no node, and has to stay so
		if !empty && !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return r.Key == to.Key }) {
			term.MatchExpressions = append(term.MatchExpressions, to)
		}
	}
}
