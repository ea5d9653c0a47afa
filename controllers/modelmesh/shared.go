package modelmesh

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	meshevents "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/events"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
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
	Pool   *meshclient.Pool
	Events *meshevents.Stream
	// Catalog has the runtimes and models of the namespaces.
	Catalog *Catalog
}

// Part is a group of controllers of the component. ctx ends with the run of the component.
type Part func(ctx context.Context, mgr ctrl.Manager, shared *Shared) error

// Sooner is the earlier of two pauses, of which 0 is none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
