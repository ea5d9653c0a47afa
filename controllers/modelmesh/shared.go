package modelmesh

import (
	"context"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/mesh"
	"github.com/odh-platform/odh-platform-operator/pkg/meshevents"
	"github.com/odh-platform/odh-platform-operator/pkg/meshsettings"
)

// Shared is what the parts of the component have in common during one run of it.
type Shared struct {
	// Config of the program.
	Config config.Config
	Served *capability.Watcher
	Domain *clusterdomain.Watcher
	Clock  clock.Clock
	// Applier writes as FieldOwner and takes over from LegacyManagers.
	Applier  *apply.Applier
	Dynamic  dynamic.Interface
	Recorder events.EventRecorder
	// Namespaces knows which namespaces are served.
	Namespaces *Namespaces
	Settings   *meshsettings.Source
	// Pool has the clients of the namespaces, Events says what happened to models there.
	Pool   *mesh.Pool
	Events *meshevents.Stream
	// Catalog has the runtimes and models of the namespaces.
	Catalog *Catalog
}

// Part is a group of controllers of the component. ctx ends with the run of the component.
type Part func(ctx context.Context, mgr ctrl.Manager, shared *Shared) error
