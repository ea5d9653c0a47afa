package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/appwrapper"
)

// appWrapperRow is AppWrapper's line of the table.
func appWrapperRow(env *Env) row {
	source := &appWrapperConfig{config: env.Config}
	return row{
		Component: component.Component{
			Name:     appwrapper.ComponentName,
			Types:    []func(*runtime.Scheme) error{awv1beta2.AddToScheme},
			Requires: []schema.GroupVersionKind{awv1beta2.GroupVersion.WithKind(awv1beta2.Kind)},
			Caches:   appwrapper.Caches(),
			Webhooks: env.withGuards(func(mgr ctrl.Manager, enabled bool, guards admission.Guards) error {
				webhook.Register(mgr, enabled, guards, func(ctx context.Context) (webhook.Settings, error) {
					c, err := source.get(ctx, mgr.GetAPIReader(), mgr.GetLogger())
					if err != nil && !enabled { // its role may be away with it
						return webhook.Settings{ReviewAccess: true}, nil
					}
					return webhook.Settings{DefaultQueueName: c.DefaultQueueName, ReviewAccess: c.UserRBACAdmissionCheck}, err
				})
				return nil
			}),
			Controllers: func(ctx context.Context, mgr ctrl.Manager) error {
				c, err := source.get(ctx, mgr.GetAPIReader(), mgr.GetLogger())
				if err != nil {
					return err
				}
				applier := func(mgr ctrl.Manager) *apply.Applier {
					return env.Applier(mgr, apply.Options{FieldOwner: appwrapper.FieldOwner, Component: appwrapper.ComponentName})
				}
				settings := appwrapper.SettingsOf(c)
				settings.Authors = env.Config.Authors
				return appwrapper.Setup(settings, env.served, applier)(ctx, mgr)
			},
		},
		FieldOwner: appwrapper.FieldOwner,
		Essential:  []schema.GroupResource{{Group: awv1beta2.GroupVersion.Group, Resource: "appwrappers"}},
		Trusts: []certs.Target{
			{Kind: certs.Mutating, Name: webhook.MutatingConfiguration},
			{Kind: certs.Validating, Name: webhook.ValidatingConfiguration},
		},
	}
}
