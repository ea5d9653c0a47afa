package main

import (
	"context"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/access"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/mlflow"
)

// mlflowSpec returns the component MLflow.
func mlflowSpec(env *Env) componentSpec {
	settings := kinds.MLflow(env.Config)
	settings.IPv6 = strings.Contains(os.Getenv("KUBERNETES_SERVICE_HOST"), ":") // the address of the first family of the cluster
	return componentSpec{
		Component: component.Component{
			Name:     mlflow.ComponentName,
			Types:    []func(*runtime.Scheme) error{mlflowv1.AddToScheme, mlflowconfigv1.AddToScheme, platformv1alpha1.AddToScheme},
			Requires: []schema.GroupVersionKind{mlflowv1.GroupVersion.WithKind("MLflow")},
			Optional: mlflow.OptionalKinds(),
			Caches:   mlflow.Caches(settings.Namespace),
			Webhooks: env.withGuards(func(mgr ctrl.Manager, enabled bool, guards admission.Guards) error {
				webhook.Register(mgr, enabled, guards, settings.Namespace)
				return nil
			}),
			Controllers: mlflowControllers(env, settings),
		},
		FieldOwner:      mlflow.FieldOwner,
		CABundleTargets: []certs.Target{{Kind: certs.Validating, Name: webhook.ValidatingConfiguration}},
	}
}

// mlflowControllers returns the controllers of MLflow and, if enabled, of namespace RBAC, which reports its state in the status of MLflow.
func mlflowControllers(env *Env, settings mlflow.Settings) func(context.Context, ctrl.Manager) error {
	applier := env.Applier(apply.Options{FieldOwner: mlflow.FieldOwner, Component: mlflow.ComponentName})
	if !env.Config.MLflow.NamespaceRBAC {
		return mlflow.Setup(settings, env.served, applier, env.clock, nil)
	}
	groups := access.New(env.Config.MLflow.ResourceNamePrefix, env.served, env.clock,
		func(mgr ctrl.Manager, reader client.Client) *apply.Applier {
			return apply.New(apply.Options{
				Client: reader, Live: mgr.GetAPIReader(), FieldOwner: mlflow.FieldOwner, Component: mlflow.ComponentName,
				FullObjectKinds: []schema.GroupVersionKind{access.RoleBindingKind},
			})
		})
	servers := mlflow.Setup(settings, env.served, applier, env.clock, groups)
	return func(ctx context.Context, mgr ctrl.Manager) error {
		if err := groups.Setup(ctx, mgr); err != nil {
			return err
		}
		return servers(ctx, mgr)
	}
}
