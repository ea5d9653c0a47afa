package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// platformRow is the line of the resources with which the platform hands areas over.
func platformRow(env *Env) row {
	settings := platform.Settings{Namespace: env.Config.Namespace, MLflowVersion: env.Config.MLflow.Version}
	return row{
		Component: component.Component{
			Name:     platform.ComponentName,
			Types:    []func(*runtime.Scheme) error{platformv1alpha1.AddToScheme, mlflowv1.AddToScheme},
			Requires: platform.Requires(),
			Optional: platform.Optional(),
			Caches:   platform.Caches(settings.Namespace),
			Controllers: platform.Setup(settings,
				func() *capability.Watcher { return env.Capabilities },
				func() clock.Clock { return env.Clock }),
		},
		Essential: []schema.GroupResource{{Group: platformv1alpha1.GroupVersion.Group, Resource: "mlflowoperators"}},
	}
}
