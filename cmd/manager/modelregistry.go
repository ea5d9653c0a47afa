package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

func modelRegistrySpec(env *Env) componentSpec {
	return componentSpec{
		Component: component.Component{
			Name:     modelregistry.ComponentName,
			Requires: []schema.GroupVersionKind{v1beta1.GroupVersion.WithKind(v1beta1.Kind)},
			Caches:   modelregistry.Caches(env.Config.ModelRegistry.Namespace),
			Webhooks: env.withGuards(func(mgr ctrl.Manager, enabled bool, guards admission.Guards) error {
				webhook.Register(mgr, enabled, guards, func(context.Context) (webhook.Settings, error) {
					hubConfig, err := env.Hub.MergeOrError(env.Config.ModelRegistry)
					if err != nil {
						return webhook.Settings{}, err
					}
					return modelregistry.RuleSettings(hubConfig, env.Capabilities.Current()), nil
				})
				return nil
			}),
			Controllers: func(_ context.Context, mgr ctrl.Manager) error {
				return modelregistry.Setup(mgr, env.serverDeps(mgr, apply.Options{
					FieldOwner: modelregistry.FieldOwner, Component: modelregistry.ComponentName, Indexed: true,
				}), takeover.New)
			},
		},
		FieldOwner: modelregistry.FieldOwner,
		CABundleTargets: []certs.Target{
			{Kind: certs.Mutating, Name: webhook.MutatingConfiguration},
			{Kind: certs.Validating, Name: webhook.ValidatingConfiguration},
			{Kind: certs.Conversion, Name: webhook.ConvertedCRD},
		},
	}
}
