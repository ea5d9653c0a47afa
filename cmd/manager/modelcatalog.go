package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

func modelCatalogSpec(env *Env) componentSpec {
	return componentSpec{
		Component: component.Component{
			Name:     modelcatalog.ComponentName,
			Requires: []schema.GroupVersionKind{aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind)},
			Caches:   modelcatalog.Caches(env.Config.ModelRegistry.Namespace),
			Webhooks: env.withGuards(func(mgr ctrl.Manager, enabled bool, guards admission.Guards) error {
				webhook.RegisterCatalog(mgr, enabled, guards, func(context.Context) (webhook.Settings, error) {
					hubConfig, err := env.Hub.MergeOrError(env.Config.ModelRegistry)
					return webhook.Settings{Namespace: hubConfig.Namespace}, err
				})
				return nil
			}),
			Controllers: func(ctx context.Context, mgr ctrl.Manager) error {
				deps := env.serverDeps(mgr, apply.Options{FieldOwner: modelcatalog.FieldOwner, Component: modelcatalog.ComponentName})
				return modelcatalog.Setup(ctx, mgr, deps, takeover.New(mgr, deps))
			},
		},
		FieldOwner:      modelcatalog.FieldOwner,
		CABundleTargets: []certs.Target{{Kind: certs.Validating, Name: webhook.CatalogValidatingConfiguration}},
	}
}
