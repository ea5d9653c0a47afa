package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/models"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/openshift"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/runtimes"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelmesh"
)

// modelMeshSpec returns the component ModelMesh: runtimes, models and their integration with OpenShift.
func modelMeshSpec(env *Env) componentSpec {
	m := &modelMesh{env: env}
	return componentSpec{
		Component: component.Component{
			Name:     modelmesh.ComponentName,
			Requires: []schema.GroupVersionKind{modelmesh.PredictorKind},
			Caches:   m.caches(),
			Webhooks: env.withGuards(m.webhooks),
			Controllers: func(ctx context.Context, mgr ctrl.Manager) error {
				return modelmesh.Setup(ctx, mgr, modelmesh.Options{
					Config: env.Config, Served: env.Capabilities, Clock: env.Clock, Settings: m.source,
					Applier:        env.Applier(mgr, apply.Options{FieldOwner: modelmesh.FieldOwner, Component: modelmesh.ComponentName}),
					Subcontrollers: []modelmesh.Subcontroller{takeover.Setup, runtimes.Setup, models.Setup, openshift.Setup},
				})
			},
		},
		FieldOwner:      modelmesh.FieldOwner,
		CABundleTargets: []certs.Target{{Kind: certs.Validating, Name: webhook.ValidatingConfiguration}},
	}
}

// modelMesh shares the source of settings between webhooks and controllers.
type modelMesh struct {
	env    *Env
	source *meshsettings.Source
}

// scope returns the namespace of the caches; "" means all.
func (m *modelMesh) scope() string {
	if c := m.env.Config.ModelMesh; c.NamespaceScope {
		return c.Namespace
	}
	return ""
}

// caches returns the cache needs of runtimes and, in cluster scope, of the OpenShift integration.
func (m *modelMesh) caches() []managercache.Need {
	needs := runtimes.Caches(m.scope())
	if m.scope() == "" {
		needs = append(needs, openshift.Caches()...)
	}
	return needs
}

// webhooks registers the webhook of runtimes. Only the settings of administrators can change the built-in server types. The defaults apply
// while the settings cannot be read or the component is disabled. The source is created here, because webhooks run on all replicas.
func (m *modelMesh) webhooks(mgr ctrl.Manager, enabled bool, guards admission.Guards) error {
	defaults := meshsettings.Default().BuiltInServerTypes
	if !enabled {
		webhook.Register(mgr, false, guards, func(context.Context, string) []string { return defaults })
		return nil
	}
	m.source = meshsettings.NewSource(meshsettings.Options{
		Config: m.env.Config.ModelMesh, Dynamic: m.env.Dynamic, Recorder: mgr.GetEventRecorder(modelmesh.ComponentName),
		Clock: m.env.Clock, Log: mgr.GetLogger().WithName("meshsettings"),
	})
	if err := mgr.Add(m.source); err != nil {
		return fmt.Errorf("adding the settings of ModelMesh to the manager: %w", err)
	}
	webhook.Register(mgr, true, guards, func(ctx context.Context, _ string) []string {
		settings, err := m.source.Admin(ctx)
		if err != nil {
			return defaults
		}
		return settings.BuiltInServerTypes
	})
	return nil
}
