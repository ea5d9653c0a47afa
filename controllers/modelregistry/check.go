package modelregistry

import (
	"context"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	rules "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

// checkSpec refuses a spec that no webhook has seen, where the settings say that there may be some.
func (r *registries) checkSpec(_ context.Context, m *v1beta1.ModelRegistry) error {
	if !r.decided().ValidateInReconciler {
		return nil
	}
	admitted, err := r.admitted(m)
	if err != nil {
		return err
	}
	if errs := rules.Validate(admitted, r.rules()); len(errs) > 0 {
		return refuse(m, errs.ToAggregate())
	}
	return nil
}

// admitted returns a copy of a registry as the webhooks would have stored it.
func (r *registries) admitted(m *v1beta1.ModelRegistry) (*v1beta1.ModelRegistry, error) {
	if !r.decided().ValidateInReconciler {
		return m.DeepCopy(), nil
	}
	return rules.Default(m, r.rules())
}

func (r *registries) rules() rules.Settings {
	return RuleSettings(r.decided(), r.served())
}

// RuleSettings are what the webhooks must know about the settings and the cluster.
func RuleSettings(s Settings, served capability.Set) rules.Settings {
	return rules.Settings{
		Namespace: s.Namespace, OpenShift: served.Has(capability.Route),
		RESTImages: []string{s.Images.REST, "quay.io/opendatahub/model-registry:latest"},
	}
}
