package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	ray "github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster/raysettings"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/raycluster"
)

// rayClusterSpec returns the component that secures Ray clusters.
func rayClusterSpec(env *Env) componentSpec {
	r := &rayCluster{env: env}
	return componentSpec{
		Component: component.Component{
			Name:        raycluster.ComponentName,
			Requires:    []schema.GroupVersionKind{ray.GVK},
			Caches:      raycluster.Caches(),
			Webhooks:    env.withGuards(r.webhooks),
			Controllers: r.controllers,
		},
		FieldOwner: raycluster.FieldOwner,
		CABundleTargets: []certs.Target{
			{Kind: certs.Mutating, Name: webhook.MutatingConfiguration},
			{Kind: certs.Validating, Name: webhook.ValidatingConfiguration},
		},
	}
}

// rayCluster shares the source of settings between webhooks and controllers.
type rayCluster struct {
	env    *Env
	source *raysettings.Source
}

// webhooks registers the webhooks of RayClusters. The source of settings is created here, because webhooks run on all replicas.
func (r *rayCluster) webhooks(mgr ctrl.Manager, enabled bool, guards admission.Guards) error {
	if !enabled {
		webhook.Register(mgr, false, guards, webhook.Options{})
		return nil
	}
	r.source = raysettings.New(raysettings.Options{
		Config: r.env.Config, Dynamic: r.env.Dynamic, Recorder: mgr.GetEventRecorder(raycluster.ComponentName),
		Clock: r.env.Clock, Log: mgr.GetLogger().WithName("raysettings"),
	})
	if err := mgr.Add(r.source); err != nil {
		return fmt.Errorf("adding the settings of Ray to the manager: %w", err)
	}
	webhook.Register(mgr, true, guards, webhook.Options{
		Settings: r.source.Get, Served: r.env.Capabilities.Current, Version: programVersion(),
		Domain: func() string { return r.env.Domain.Domain() },
	})
	return nil
}

// controllers is called when the API of KubeRay is served, and again after an error.
func (r *rayCluster) controllers(ctx context.Context, mgr ctrl.Manager) error {
	applier := r.env.Applier(mgr, apply.Options{FieldOwner: raycluster.FieldOwner, Component: raycluster.ComponentName, Finalizer: ray.Finalizer})
	kinds := func() []schema.GroupVersionKind { return raycluster.LegacyKinds(r.env.Capabilities.Current()) }
	takeOver, err := takeover.New(mgr, applier, kinds, r.env.Clock)
	if err != nil {
		return err
	}
	return raycluster.Setup(ctx, mgr, raycluster.Deps{
		OperatorNamespace: r.env.Config.OperatorNamespace, Settings: r.source, Served: r.env.Capabilities, Domain: r.env.Domain,
		Dynamic: r.env.Dynamic, Clock: r.env.Clock, TakeOver: takeOver, Applier: applier,
	})
}
