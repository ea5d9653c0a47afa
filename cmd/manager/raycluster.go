package main

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	ray "github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster/raysettings"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/raycluster"
)

// rayClusterRow is the line of the table for the security of Ray clusters.
func rayClusterRow(env *Env) row {
	r := &rayCluster{env: env}
	return row{
		Component: component.Component{
			Name:        raycluster.ComponentName,
			Requires:    []schema.GroupVersionKind{ray.GVK},
			Caches:      raycluster.Caches(),
			Webhooks:    r.webhooks,
			Controllers: r.controllers,
		},
		FieldOwner: raycluster.FieldOwner,
		Trusts: []certs.Target{
			{Kind: certs.Mutating, Name: webhook.MutatingConfiguration},
			{Kind: certs.Validating, Name: webhook.ValidatingConfiguration},
		},
		Essential: []schema.GroupResource{{Group: ray.GVK.Group, Resource: "rayclusters"}},
		Renders:   kinds.ByComponent()[raycluster.ComponentName],
	}
}

// rayCluster joins webhooks and controllers, which have one source of settings.
type rayCluster struct {
	env *Env

	mu     sync.Mutex
	source *raysettings.Source
}

// settings returns the source of settings, which is made and added to the manager once.
func (r *rayCluster) settings(mgr ctrl.Manager) (*raysettings.Source, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source != nil {
		return r.source, nil
	}
	client, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("building the dynamic client: %w", err)
	}
	source := raysettings.New(raysettings.Options{
		Config: r.env.Config, Dynamic: client, Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(raycluster.ComponentName),
		Clock: r.env.Clock, Log: mgr.GetLogger().WithName("raysettings"),
	})
	if err := mgr.Add(source); err != nil {
		return nil, fmt.Errorf("adding the settings of Ray to the manager: %w", err)
	}
	r.source = source
	return source, nil
}

// webhooks answers for RayClusters from the settings of the moment.
func (r *rayCluster) webhooks(mgr ctrl.Manager, enabled bool) error {
	guards, err := admission.NewGuards(mgr, r.env.Config.Authors)
	if err != nil {
		return err
	}
	if !enabled {
		webhook.Register(mgr, false, guards, webhook.Options{})
		return nil
	}
	source, err := r.settings(mgr)
	if err != nil {
		return err
	}
	webhook.Register(mgr, true, guards, webhook.Options{
		Settings: source.Get, Served: r.env.Capabilities.Current, Version: programVersion(),
		Domain: func() string { return r.env.Domain.Domain() },
	})
	return nil
}

// controllers is called when KubeRay's API is served, and again after it has failed.
func (r *rayCluster) controllers(ctx context.Context, mgr ctrl.Manager) error {
	source, err := r.settings(mgr)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building the dynamic client: %w", err)
	}
	return raycluster.Setup(ctx, mgr, raycluster.Deps{
		OperatorNamespace: r.env.Config.OperatorNamespace, Settings: source, Served: r.env.Capabilities, Domain: r.env.Domain,
		Dynamic: client, Clock: r.env.Clock,
		Applier: r.env.Applier(mgr, apply.Options{FieldOwner: raycluster.FieldOwner, Component: raycluster.ComponentName}),
	})
}
