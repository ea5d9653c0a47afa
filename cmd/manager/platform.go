package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/controllers/platform/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// platformSpecs returns a component for each custom resource by which the platform configures this operator, because a cluster may serve only
// one of the kinds. The components have the same name, because they are enabled together.
func platformSpecs(env *Env) []componentSpec {
	deps := func(mgr ctrl.Manager) platform.Deps {
		return platform.Deps{Served: env.Capabilities, Clock: env.Clock, Hub: env.Hub,
			Applier: env.Applier(mgr, apply.Options{FieldOwner: platform.AIHubFieldOwner, Component: platform.ComponentName})}
	}
	return []componentSpec{
		{Component: component.Component{
			Name:     platform.ComponentName,
			Requires: []schema.GroupVersionKind{platformv1alpha1.GroupVersion.WithKind("MLflowOperator")},
			Caches:   platform.Caches(),
			Controllers: func(_ context.Context, mgr ctrl.Manager) error {
				settings := platform.Settings{Namespace: env.Config.Namespace, MLflowVersion: env.Config.MLflow.Version, PlatformType: env.Config.PlatformType}
				return platform.SetupMLflowOperator(mgr, settings, deps(mgr))
			},
		}},
		{Component: component.Component{
			Name:     platform.ComponentName,
			Requires: []schema.GroupVersionKind{aihub.Kind},
			Controllers: func(_ context.Context, mgr ctrl.Manager) error {
				d := deps(mgr)
				var err error
				if d.TakeOver, err = takeover.New(mgr, d.Applier, env.Config.OperatorNamespace); err != nil {
					return err
				}
				return platform.SetupAIHub(mgr, hubSettings(env), d)
			},
		}},
	}
}

// hubSettings returns the settings of the AIHub controller, with the Deployments of the legacy AIHub and the components that replace them.
func hubSettings(env *Env) platform.AIHubSettings {
	return platform.AIHubSettings{
		PlatformType: env.Config.PlatformType, Namespace: env.Config.OperatorNamespace, RegistriesNamespace: env.Config.ModelRegistry.Namespace,
		Registry: platform.Component{
			Deployment: "model-registry-operator-controller-manager", Component: modelregistry.ComponentName,
			Enabled: env.Config.Enabled(modelregistry.ComponentName), Requires: []schema.GroupVersionKind{v1beta1.GroupVersion.WithKind(v1beta1.Kind)},
		},
		Catalog: platform.Component{
			Deployment: "catalog-controller-manager", Component: modelcatalog.ComponentName,
			Enabled: env.Config.Enabled(modelcatalog.ComponentName), Requires: []schema.GroupVersionKind{aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind)},
		},
		Releases: []platformv1alpha1.Release{
			{Name: "Kubeflow Model Registry", Version: modelRegistryVersion, RepoURL: "https://github.com/kubeflow/model-registry"},
			{Name: "Open Data Hub Model Registry Operator", Version: programVersion(), RepoURL: "https://github.com/opendatahub-io/model-registry-operator"},
		},
	}
}
