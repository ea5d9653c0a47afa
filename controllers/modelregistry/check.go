package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	rules "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

// checkSpec refuses what no author may let pods use, which admission does not let pass, and names of other things; and a spec that no
// webhook has seen, where the settings say that there may be some.
func (r *registries) checkSpec(_ context.Context, m *v1beta1.ModelRegistry) error {
	if err := r.settings.Authors.Forbidden(rules.Uses(r.settings.Authors, m)); err != nil {
		return refuse(m, err)
	}
	if detail := rules.ReservedName(m.Name); detail != "" && untouched(m, detail) {
		return refuse(m, errors.New("metadata.name: "+detail))
	}
	if !r.effective(m).ValidateInReconciler {
		return nil
	}
	admitted, err := r.admitted(m)
	if err != nil {
		return err
	}
	if errs := rules.Validate(admitted, r.rules(m)); len(errs) > 0 {
		return refuse(m, errs.ToAggregate())
	}
	return nil
}

// untouched reports whether nothing was ever made for a registry, by its status, which has no more than the given refusal. Those that
// exist keep their names.
func untouched(m *v1beta1.ModelRegistry, refusal string) bool {
	available := meta.FindStatusCondition(m.Status.Conditions, ConditionAvailable)
	return available == nil || available.Status == metav1.ConditionFalse && strings.Contains(available.Message, refusal)
}

// admitted returns a copy of a registry as the webhooks would have stored it.
func (r *registries) admitted(m *v1beta1.ModelRegistry) (*v1beta1.ModelRegistry, error) {
	if !r.effective(m).ValidateInReconciler {
		return m.DeepCopy(), nil
	}
	return rules.Default(m, r.rules(m))
}

func (r *registries) rules(m *v1beta1.ModelRegistry) rules.Settings {
	return RuleSettings(r.effective(m), r.served())
}

// checkPlace leaves registries alone that live outside of the namespace which the settings name: nothing is read there. What they
// have made stays as it is.
func (r *registries) checkPlace(_ context.Context, m *v1beta1.ModelRegistry) error {
	wanted := r.effective(m).Namespace
	if wanted == "" || m.Namespace == wanted {
		return nil
	}
	setCondition(m, ConditionAvailable, metav1.ConditionUnknown, ReasonMisplaced, fmt.Sprintf("registries live in namespace %s "+
		"(REGISTRIES_NAMESPACE, or spec.instancesNamespace of the AIHub); nothing of this one is watched or changed: create it there, or change the setting", wanted))
	if m.Spec.KubeRBACProxy != nil {
		setCondition(m, ConditionProxy, metav1.ConditionUnknown, ReasonMisplaced, "the registry is not in namespace "+wanted)
	}
	return &reconciler.Wait{For: "the registry to be in namespace " + wanted, Stalled: true}
}

// RuleSettings are what the webhooks must know about the settings and the cluster.
func RuleSettings(s Settings, served capability.Set) rules.Settings {
	return rules.Settings{
		Namespace: s.Namespace, OpenShift: served.Has(capability.Route),
		RESTImages: []string{s.Images.REST, "quay.io/opendatahub/model-registry:latest"},
	}
}
