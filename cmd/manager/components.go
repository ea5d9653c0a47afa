package main

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// row is one line of the table: a component, and what the program around it must know.
type row struct {
	component.Component
	// FieldOwner under which it applies; the cache keeps its managed fields.
	FieldOwner string
	// Essential kinds beside those that the component requires, see [permissions].
	Essential []schema.GroupVersionKind
	// Trusts are the webhook configurations and CRDs that must know the CA of a self-issued certificate.
	Trusts []certs.Target
}

// Env is what components are built from. Config is set when the table is read to run; the rest is set when
// Controllers and Webhooks are called. To learn the names the table is also read with an empty Env.
type Env struct {
	Config       config.Config
	Clock        clock.Clock
	Capabilities *capability.Watcher
	Dynamic      dynamic.Interface
	// Domain is where the cluster's routers publish applications.
	Domain *clusterdomain.Watcher
	// Hub knows what the platform decided about registries and the catalog; nil while the component platform is off.
	Hub *aihub.Watcher
	// Whole lists the kinds that the cache holds as whole objects, for apply.Options.
	Whole []schema.GroupVersionKind
}

// Applier makes appliers on the manager's clients; o brings FieldOwner, Component and LegacyManagers.
func (e *Env) Applier(o apply.Options) func(ctrl.Manager) *apply.Applier {
	return func(mgr ctrl.Manager) *apply.Applier {
		o.Client, o.Live, o.FullObjectKinds, o.Indexed = mgr.GetClient(), mgr.GetAPIReader(), e.Whole, true
		return apply.New(o)
	}
}

// These are handed to components before their values are known.
func (e *Env) served() *capability.Watcher    { return e.Capabilities }
func (e *Env) domain() *clusterdomain.Watcher { return e.Domain }
func (e *Env) hub() *aihub.Watcher            { return e.Hub }
func (e *Env) clock() clock.Clock             { return e.Clock }

// withGuards makes the function that registers webhooks out of one that needs the checks of authors.
func (e *Env) withGuards(register func(ctrl.Manager, bool, admission.Guards) error) func(ctrl.Manager, bool) error {
	return func(mgr ctrl.Manager, enabled bool) error {
		guards, err := admission.NewGuards(mgr, e.Config.Authors)
		if err != nil {
			return err
		}
		return register(mgr, enabled, guards)
	}
}

// components is the table of contents of the program.
func components(env *Env) []row {
	return []row{mlflowRow(env), appWrapperRow(env), rayClusterRow(env), modelRegistryRow(env), modelCatalogRow(env), modelMeshRow(env),
		platformRow(env), olmRow(env)}
}

// bare strips the rows down to the components.
func bare(rows []row) []component.Component {
	out := make([]component.Component, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.Component)
	}
	return out
}

// enabledRows returns the rows that are switched on.
func enabledRows(rows []row, enabled func(string) bool) []row {
	var out []row
	for _, r := range rows {
		if enabled(r.Name) {
			out = append(out, r)
		}
	}
	return out
}
