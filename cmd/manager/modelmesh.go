package main

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/meshsettings"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelmesh"
)

// modelMeshRow is the line of ModelMesh: runtimes, models, and what OpenShift adds.
func modelMeshRow(env *Env) row {
	return row{
		Component: component.Component{
			Name:     modelmesh.ComponentName,
			Requires: []schema.GroupVersionKind{modelmesh.PredictorKind},
			Caches:   modelmesh.Caches(""),
			Webhooks: func(mgr ctrl.Manager, enabled bool) error {
				webhook.Register(mgr, enabled, func(string) []string { return meshsettings.Default().BuiltInServerTypes })
				return nil
			},
			Controllers: modelmesh.Setup(modelmesh.Environment{
				Config: env.Config,
				Served: func() *capability.Watcher { return env.Capabilities },
				Domain: func() *clusterdomain.Watcher { return env.Domain },
				Clock:  func() clock.Clock { return env.Clock },
				Applier: func(mgr ctrl.Manager) *apply.Applier {
					return env.Applier(mgr, apply.Options{
						FieldOwner: modelmesh.FieldOwner, Component: modelmesh.ComponentName,
						LegacyManagers: modelmesh.LegacyManagers(), StripAnnotations: modelmesh.LegacyAnnotations(),
					})
				},
				Parts: []modelmesh.Part{},
			}),
		},
		FieldOwner: modelmesh.FieldOwner,
		Trusts:     []certs.Target{{Kind: certs.Validating, Name: webhook.ValidatingConfiguration}},
		Essential:  []schema.GroupResource{{Group: modelmesh.PredictorKind.Group, Resource: "predictors"}},
	}
}
