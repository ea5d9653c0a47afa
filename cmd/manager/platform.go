package main

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// platformSpec returns the component of the custom resources by which the platform configures this operator. Each of them has its own
// supervisor, because a cluster may serve only one.
func platformSpec(env *Env) componentSpec {
	settings := platform.Settings{Namespace: env.Config.Namespace, MLflowVersion: env.Config.MLflow.Version, PlatformType: env.Config.PlatformType}
	deps := func(mgr ctrl.Manager) platform.Deps {
		return platform.Deps{Served: env.Capabilities, Clock: env.Clock, Hub: env.Hub,
			Applier: env.Applier(mgr, apply.Options{FieldOwner: platform.AIHubFieldOwner, Component: platform.ComponentName})}
	}
	parts := platform.Components(
		func(_ context.Context, mgr ctrl.Manager) error {
			return platform.SetupMLflowOperator(mgr, settings, deps(mgr))
		},
		func(_ context.Context, mgr ctrl.Manager) error {
			return platform.SetupAIHub(mgr, hubSettings(env), deps(mgr))
		})
	return componentSpec{
		Component: component.Component{
			Name:     platform.ComponentName,
			Types:    []func(*runtime.Scheme) error{platformv1alpha1.AddToScheme, mlflowv1.AddToScheme, aihubv1alpha1.AddToScheme},
			Optional: platform.OptionalKinds(),
			Caches:   platform.Caches(),
			Controllers: func(ctx context.Context, mgr ctrl.Manager) error {
				return component.Setup(ctx, mgr, env.Capabilities, parts, func(string) bool { return true })
			},
		},
		Essential: slices.Concat(parts[0].Requires, parts[1].Requires),
	}
}

// hubSettings returns the Deployments that the legacy AIHub created, with the components that replace them.
func hubSettings(env *Env) platform.AIHubSettings {
	return platform.AIHubSettings{
		PlatformType: env.Config.PlatformType, Namespace: env.Config.OperatorNamespace, RegistriesNamespace: env.Config.ModelRegistry.Namespace,
		Registry: platform.Program{
			Deployment: "model-registry-operator-controller-manager", Component: modelregistry.ComponentName,
			Enabled: env.Config.Enabled(modelregistry.ComponentName), Requires: []schema.GroupVersionKind{v1beta1.GroupVersion.WithKind(v1beta1.Kind)},
		},
		Catalog: platform.Program{
			Deployment: "catalog-controller-manager", Component: modelcatalog.ComponentName,
			Enabled: env.Config.Enabled(modelcatalog.ComponentName), Requires: []schema.GroupVersionKind{aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind)},
		},
		Releases: []platformv1alpha1.Release{
			{Name: "Kubeflow Model Registry", Version: modelRegistryVersion, RepoURL: "https://github.com/kubeflow/model-registry"},
			{Name: "Open Data Hub Model Registry Operator", Version: programVersion(), RepoURL: "https://github.com/opendatahub-io/model-registry-operator"},
		},
	}
}
