package main

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/controllers/olm"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// olmSpec returns the component that creates objects for an installation by OLM.
func olmSpec(env *Env) componentSpec {
	return componentSpec{
		Component: component.Component{
			Name:     olm.ComponentName,
			Requires: olm.Requires(),
			Caches:   olm.Caches(),
			Controllers: func(_ context.Context, mgr ctrl.Manager) error {
				return olm.Setup(mgr, olm.Deps{
					Namespace: env.Config.OperatorNamespace, Served: env.Capabilities,
					Applier: env.Applier(mgr, apply.Options{FieldOwner: olm.FieldOwner, Component: olm.ComponentName}),
				})
			},
		},
		FieldOwner: olm.FieldOwner,
	}
}
