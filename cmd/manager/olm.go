package main

import (
	"github.com/odh-platform/odh-platform-operator/controllers/olm"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// olmRow is the line of what the manager creates if OLM installs it.
func olmRow(env *Env) row {
	return row{
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
