// Package aihub watches the AIHub of the platform and applies its spec to the settings of registries and the catalog. The legacy operators read
// these settings from environment variables and were restarted for each change.
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

// Kind is the kind of AIHub.
var Kind = platformv1alpha1.GroupVersion.WithKind("AIHub")

var resource = platformv1alpha1.GroupVersion.WithResource("aihubs")

// errNotRead is returned by MergeOrError until the AIHub is read for the first time.
var errNotRead = errors.New("the AIHub " + platformv1alpha1.AIHubName + " has not been read yet; try again in a moment")

// Merge returns the settings with the values of an AIHub spec, which may be nil. settings.Namespace has precedence, because it
// restricts the cache. The AIHub controller reports the conflict.
func Merge(settings config.ModelRegistry, spec *platformv1alpha1.AIHubSpec) config.ModelRegistry {
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

// GatewayDomain returns the domain of the gateway of an AIHub, or "".
func GatewayDomain(spec *platformv1alpha1.AIHubSpec) string {
	if spec == nil || spec.Gateway == nil {
		return ""
	}
	return strings.TrimSpace(spec.Gateway.Domain)
}

// Watcher watches the singleton AIHub on every replica, because webhooks use it too. Without the component platform it is nil, and reports that
// no AIHub exists.
type Watcher struct {
	value *singleton.Value[*platformv1alpha1.AIHubSpec]
}

// NewWatcher returns a Watcher that is inactive until SetServed is called with true.
func NewWatcher(client dynamic.Interface, clk clock.Clock, log logr.Logger) *Watcher {
	return &Watcher{value: singleton.NewValue(singleton.Options{
		Client: client.Resource(resource), Resource: resource.GroupResource(), Name: platformv1alpha1.AIHubName, Clock: clk, Log: log,
	}, singleton.Absent, specOf)}
}

// specOf returns the spec of an AIHub, or nil if it is missing or cannot be decoded.
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

// AddTo adds the Watcher to a manager.
func (w *Watcher) AddTo(mgr manager.Manager) error {
	if w == nil {
		return nil
	}
	return mgr.Add(w.value)
}

// SetServed sets whether the cluster serves AIHub.
func (w *Watcher) SetServed(served bool) {
	if w != nil {
		w.value.SetServed(served)
	}
}

// current returns the spec of the AIHub, or nil, and whether it is known.
func (w *Watcher) current() (spec *platformv1alpha1.AIHubSpec, known bool) {
	if w == nil {
		return nil, true
	}
	return w.value.Current()
}

// WaitForSpec returns a Wait until the AIHub is read, so that a restart of the manager does not change published routes.
func (w *Watcher) WaitForSpec() error {
	if _, known := w.current(); !known {
		return &reconciler.Wait{For: "the AIHub to be read", Retry: time.Second}
	}
	return nil
}

// Merge returns the settings with the values of the current AIHub.
func (w *Watcher) Merge(settings config.ModelRegistry) config.ModelRegistry {
	spec, _ := w.current()
	return Merge(settings, spec)
}

// MergeOrError is like Merge, but returns an error until the AIHub is read.
func (w *Watcher) MergeOrError(settings config.ModelRegistry) (config.ModelRegistry, error) {
	spec, known := w.current()
	if !known {
		return settings, errNotRead
	}
	return Merge(settings, spec), nil
}

// EventSource returns a source that sends an event of the object to the handler when the spec of the AIHub changes.
func (w *Watcher) EventSource(object client.Object, h handler.EventHandler) source.Source {
	if w == nil {
		return (&singleton.Value[*platformv1alpha1.AIHubSpec]{}).EventSource(object, h)
	}
	return w.value.EventSource(object, h)
}
