// Package aihub gives registries and the catalog what the platform decided about them in its AIHub. The originals learnt it
// from variables that the controller of AIHub wrote into their Deployments, and restarted for each change.
package aihub

import (
	"errors"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// Kind of the resource with which the platform hands registries and the catalog over.
var Kind = platformv1alpha1.GroupVersion.WithKind("AIHub")

var resource = platformv1alpha1.GroupVersion.WithResource("aihubs")

// errUnsettled is for callers that cannot wait.
var errNotRead = errors.New("the AIHub " + platformv1alpha1.AIHubName + " has not been read yet; try again in a moment")

// Over lays the decisions of an AIHub over the settings of the process; nil changes nothing. A namespace that is set for the
// process stays, since it bounds what is held in memory; the controller of AIHub reports that the two differ.
func ApplyTo(settings config.ModelRegistry, spec *platformv1alpha1.AIHubSpec) config.ModelRegistry {
	if spec == nil {
		return settings
	}
	if settings.Namespace == "" {
		settings.Namespace = spec.InstancesNamespace
	}
	settings.Gateway.RouteNamespace = spec.ApplicationNamespace
	if domain := GatewayDomain(spec); domain != "" {
		settings.Gateway.Domain = domain
	}
	return settings
}

// Domain of the gateway that an AIHub names; "" when it names none.
func GatewayDomain(spec *platformv1alpha1.AIHubSpec) string {
	if spec == nil || spec.Gateway == nil {
		return ""
	}
	return strings.TrimSpace(spec.Gateway.Domain)
}

// Watcher follows the one AIHub, on every replica, since webhooks ask it too. Where the component platform is off there is a nil
// one, which knows of no AIHub and is settled.
type Watcher struct {
	value *singleton.Value[*platformv1alpha1.AIHubSpec]
}

// NewWatcher returns a Watcher that waits for SetServed.
func NewWatcher(client dynamic.Interface, clk clock.Clock, log logr.Logger) *Watcher {
	w := &Watcher{}
	w.value = singleton.NewValue(singleton.Options{
		Client: client.Resource(resource), Resource: resource.GroupResource(), Name: platformv1alpha1.AIHubName, Clock: clk, Log: log,
		OnUnavailable: func() { w.value.OnUpdate(nil) },
	}, specOf)
	return w
}

// specOf is the spec of an AIHub, nil where there is none. One that cannot be read, which its schema prevents, is none.
func specOf(object *unstructured.Unstructured) *platformv1alpha1.AIHubSpec {
	if object == nil {
		return nil
	}
	hub, err := resources.Decode[platformv1alpha1.AIHub](object)
	if err != nil {
		return nil
	}
	return &hub.Spec
}

// AddTo lets a manager run it.
func (w *Watcher) AddTo(mgr manager.Manager) error {
	if w == nil {
		return nil
	}
	return mgr.Add(w.value)
}

// SetServed says whether the cluster serves AIHub. Where it does not, there is none.
func (w *Watcher) SetServed(served bool) {
	if w != nil {
		w.value.SetServed(served)
	}
}

// current is the spec of the present AIHub, and whether the cluster has answered.
func (w *Watcher) current() (spec *platformv1alpha1.AIHubSpec, settled bool) {
	if w == nil {
		return nil, true
	}
	return w.value.Current()
}

// Await returns a wait until the cluster has answered: what is published as an AIHub wanted must not move because the manager has just
// started.
func (w *Watcher) Await() error {
	if _, settled := w.current(); !settled {
		return &reconciler.Wait{For: "the AIHub to be read", Retry: time.Second}
	}
	return nil
}

// Over lays the decisions of the present AIHub over the settings of the process.
func (w *Watcher) ApplyTo(settings config.ModelRegistry) config.ModelRegistry {
	spec, _ := w.current()
	return ApplyTo(settings, spec)
}

// Certain is Over for callers that cannot wait: it fails until the cluster has answered.
func (w *Watcher) ApplyToOrError(settings config.ModelRegistry) (config.ModelRegistry, error) {
	spec, settled := w.current()
	if !settled {
		return settings, errNotRead
	}
	return ApplyTo(settings, spec), nil
}

// Changes is a source that wakes a controller with the object whenever the decisions change.
func (w *Watcher) Changes(object client.Object, h handler.EventHandler) source.Source {
	if w == nil {
		return (&singleton.Value[*platformv1alpha1.AIHubSpec]{}).Changes(object, h)
	}
	return w.value.Changes(object, h)
}
