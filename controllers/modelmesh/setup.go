package modelmesh

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	meshevents "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/events"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "modelmesh"

// FieldOwner is the manager of every field we set.
const FieldOwner = "modelmesh-controller"

// MaxNote bounds the note of an Event in bytes: the API server refuses one of more than 1 KiB.
const MaxNote = 1000

// LegacyManagers are the names under which the original updated whole objects.
func LegacyManagers() []string { return []string{"manager"} }

// LegacyAnnotations are those in which the original kept a copy of what it had written.
func LegacyAnnotations() []string {
	return []string{corev1.LastAppliedConfigAnnotation, "manifestival"}
}

// PredictorKind is the resource of our own that the component needs; all other APIs of KServe may come and go.
var PredictorKind = schema.GroupVersionKind{Group: "serving.kserve.io", Version: "v1alpha1", Kind: "Predictor"}

// Rights on what has no namespace, and on the kinds of KServe and Prometheus, which may come and go and are always watched in all
// namespaces. Of runtimes and namespaces only the finalizers may be written: what an owner reference that holds up deletion asks
// for. The rights on what is made are in package runtimes.

// +kubebuilder:rbac:groups=serving.kserve.io,resources=predictors;inferenceservices;servingruntimes;clusterservingruntimes,verbs=list;watch
// +kubebuilder:rbac:groups=serving.kserve.io,resources=servingruntimes/finalizers;clusterservingruntimes/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces/finalizers,verbs=update
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors,verbs=get;list;watch;create;patch;delete

// Environment is what Setup needs from the program. What the functions return is needed when the component starts, not before.
type Environment struct {
	Config  config.Config
	Served  func() *capability.Watcher
	Clock   func() clock.Clock
	Applier func(ctrl.Manager) *apply.Applier
	// Settings are those of meshsettings; the source is a runnable of the program.
	Settings func() *meshsettings.Source
	// Parts are the controllers of the component.
	Parts []Part
}

// Setup registers the controllers with a manager. It is called when the API of Predictors is served, and again after it has failed.
func Setup(e Environment) func(context.Context, ctrl.Manager) error {
	return func(ctx context.Context, mgr ctrl.Manager) error {
		shared, err := e.shared(mgr)
		if err != nil {
			return err
		}
		for _, part := range e.Parts {
			if err := part(ctx, mgr, shared); err != nil {
				return err
			}
		}
		return nil
	}
}

// shared makes what the parts have in common, and adds what of it runs to the manager.
func (e Environment) shared(mgr ctrl.Manager) (*Shared, error) {
	own := e.Config.ModelMesh.Namespace
	namespaces, err := NewNamespaces(mgr, own, e.Config.ModelMesh.NamespaceScope)
	if err != nil {
		return nil, err
	}
	settings, log := e.Settings(), mgr.GetLogger().WithName(ComponentName)
	catalog := &Catalog{
		Config: e.Config.ModelMesh, Cached: mgr.GetClient(), Namespaces: namespaces, Served: e.Served().Current, Settings: settings.For,
	}
	s := &Shared{
		Catalog: catalog, Config: e.Config, Served: e.Served(), Clock: e.Clock(), Applier: e.Applier(mgr),
		Recorder: mgr.GetEventRecorder(ComponentName), Namespaces: namespaces, Settings: settings,
		Pool:   meshclient.NewPool(log.WithName("mesh")),
		Events: meshevents.NewWatcher(meshevents.Options{OperatorNamespace: own, Clock: e.Clock(), Log: log.WithName("events")}),
	}
	slices, err := sliceCache(mgr, namespaces)
	if err != nil {
		return nil, err
	}
	return s, errors.Join(mgr.Add(s.Pool), mgr.Add(s.Events), meshclient.SetupEndpointSliceController(mgr, ComponentName+"-endpoints", slices, s.Pool))
}

// sliceCache holds the EndpointSlices of the Services in front of runtimes: slices have the labels of their Service.
func sliceCache(mgr ctrl.Manager, namespaces *Namespaces) (cache.Cache, error) {
	return NarrowToMesh(mgr, &discoveryv1.EndpointSlice{}, namespaces, nil)
}

// NarrowToMesh adds a cache of its own for one kind to the manager, which holds what belongs to the Services in front of runtimes, by their
// label, in the namespaces that may be served.
func NarrowToMesh(mgr ctrl.Manager, object client.Object, namespaces *Namespaces, transform toolscache.TransformFunc) (cache.Cache, error) {
	has, err := labels.Parse(mm.LabelService)
	if err != nil {
		return nil, fmt.Errorf("selecting %T by label: %w", object, err)
	}
	by := namespaces.Narrow()
	by.Label = has
	return component.NewSelectorCache(mgr, object, by, transform)
}

// Shared is what the parts of the component have in common during one run of it.
type Shared struct {
	// Config of the program.
	Config config.Config
	Served *capability.Watcher
	Clock  clock.Clock
	// Applier writes as FieldOwner and takes over from LegacyManagers.
	Applier  *apply.Applier
	Recorder events.EventRecorder
	// Namespaces knows which namespaces are served.
	Namespaces *Namespaces
	Settings   *meshsettings.Source
	// Pool has the clients of the namespaces, Events says what happened to models there.
	Pool   *meshclient.Pool
	Events *meshevents.Watcher
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
