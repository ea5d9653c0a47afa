package raycluster

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Admit is what the webhooks make of a new cluster: the object with everything that they put into it, and their warnings. An error
// is their refusal. The object is not changed.
func Admit(s Settings, object map[string]any) (admitted map[string]any, warnings []string, err error) {
	a := &asked{cluster: raycluster.View(object)}
	if a.shape = shapeErrors(a.cluster); len(a.shape) > 0 {
		return nil, nil, a.shape.ToAggregate()
	}
	finished, err := a.defaulted(s, types.UID(""))
	if err != nil {
		return nil, nil, err
	}
	cluster := raycluster.View(finished)
	p, err := planFor(s, cluster, raycluster.Cluster{})
	if err != nil {
		return nil, nil, err
	}
	if violations := p.violations(); len(violations) > 0 {
		return nil, nil, violations.ToAggregate()
	}
	return finished, p.warnings(), nil
}
