package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// appWrapperRow is AppWrapper's line of the table.
func appWrapperRow(env *Env) row {
	return row{
		Component: component.Component{
			Name:     appwrapper.ComponentName,
			Types:    []func(*runtime.Scheme) error{awv1beta2.AddToScheme},
			Requires: []schema.GroupVersionKind{awv1beta2.GroupVersion.WithKind(awv1beta2.Kind)},
			Caches:   appwrapper.Caches(),
			Controllers: appwrapper.Setup(appwrapper.DefaultSettings(), func() *capability.Watcher { return env.Capabilities }, func(mgr ctrl.Manager) *apply.Applier {
				return env.Applier(mgr, apply.Options{FieldOwner: appwrapper.FieldOwner, Component: appwrapper.ComponentName})
			}),
		},
		FieldOwner: appwrapper.FieldOwner,
		Essential:  []schema.GroupResource{{Group: awv1beta2.GroupVersion.Group, Resource: "appwrappers"}},
	}
}
