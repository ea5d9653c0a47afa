package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// mlflowRow is MLflow's line of the table.
func mlflowRow(env *Env) row {
	kind := mlflowv1.GroupVersion.WithKind("MLflow")
	settings := mlflowSettings(env.Config)
	return row{
		Component: component.Component{
			Name:     mlflow.ComponentName,
			Types:    []func(*runtime.Scheme) error{mlflowv1.AddToScheme},
			Requires: []schema.GroupVersionKind{kind},
			Caches:   mlflow.Caches(settings.Namespace),
			Controllers: mlflow.Setup(settings,
				func() *capability.Watcher { return env.Capabilities },
				func(mgr ctrl.Manager) *apply.Applier {
					return env.Applier(mgr, apply.Options{FieldOwner: mlflow.FieldOwner, Component: mlflow.ComponentName})
				}),
		},
		FieldOwner: mlflow.FieldOwner,
		Essential:  []schema.GroupResource{{Group: mlflowv1.GroupVersion.Group, Resource: "mlflows"}},
		Renders: map[schema.GroupVersionKind]renderFunc{
			kind: func(object *unstructured.Unstructured, env RenderEnv) ([]*unstructured.Unstructured, error) {
				return mlflow.Render(mlflowSettings(env.Config), env.Capabilities, object)
			},
		},
	}
}

func mlflowSettings(c config.Config) mlflow.Settings {
	return mlflow.Settings{
		Namespace:        c.Namespace,
		Image:            c.MLflow.Image,
		GatewayName:      c.MLflow.GatewayName,
		GatewayNamespace: c.MLflow.GatewayNamespace,
		ExternalURL:      c.MLflow.ExternalURL,
		CORSBaseURL:      c.MLflow.CORSBaseURL,
		SectionTitle:     c.MLflow.SectionTitle,
	}
}
