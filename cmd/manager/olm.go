package main

import (
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
			Controllers: olm.Setup(env.Config.OperatorNamespace, olm.Environment{
				Served:  env.served,
				Applier: env.Applier(apply.Options{FieldOwner: olm.FieldOwner, Component: olm.ComponentName}),
			}),
		},
		FieldOwner: olm.FieldOwner,
	}
}
