package main

import (
	"context"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/access"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/mlflow"
)

func mlflowSpec(env *Env) componentSpec {
	return componentSpec{
		Component: component.Component{
			Name:     mlflow.ComponentName,
			Requires: []schema.GroupVersionKind{mlflowv1.GroupVersion.WithKind("MLflow")},
			Caches:   mlflow.Caches(env.Config.Namespace),
			Webhooks: env.withGuards(func(mgr ctrl.Manager, enabled bool, guards admission.Guards) error {
				webhook.Register(mgr, enabled, guards, env.Config.Namespace)
				return nil
			}),
			Controllers: env.mlflowControllers,
		},
		FieldOwner:      mlflow.FieldOwner,
		CABundleTargets: []certs.Target{{Kind: certs.Validating, Name: webhook.ValidatingConfiguration}},
	}
}

// mlflowControllers adds the MLflow controller and, if enabled, the controller of namespace RBAC. The status of MLflow reports both.
func (e *Env) mlflowControllers(ctx context.Context, mgr ctrl.Manager) error {
	options := apply.Options{FieldOwner: mlflow.FieldOwner, Component: mlflow.ComponentName}
	deps := mlflow.Deps{Settings: mlflowSettings(e.Config), Served: e.Capabilities, Applier: e.Applier(mgr, options), Clock: e.Clock}
	if e.Config.MLflow.NamespaceRBAC {
		namespaceRBAC, err := access.Setup(ctx, mgr, access.Deps{
			Prefix: e.Config.MLflow.ResourceNamePrefix, Served: e.Capabilities, Dynamic: e.Dynamic, Clock: e.Clock,
			Applier: func(reader client.Client) *apply.Applier {
				options.Client, options.Live, options.FullObjectKinds = reader, mgr.GetAPIReader(), []schema.GroupVersionKind{access.RoleBindingKind}
				return apply.New(options)
			},
		})
		if err != nil {
			return err
		}
		deps.Feedback = namespaceRBAC
	}
	return mlflow.Setup(mgr, deps)
}

func mlflowSettings(cfg config.Config) mlflow.Settings {
	settings := kinds.MLflow(cfg)
	settings.IPv6 = strings.Contains(os.Getenv("KUBERNETES_SERVICE_HOST"), ":") // the ClusterIP of the API server, in the primary IP family of the cluster
	return settings
}
