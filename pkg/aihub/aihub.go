// Package aihub tells registries and the catalog what the platform decided about them in its AIHub. The originals learnt it
// from variables that the controller of AIHub wrote into their Deployments, and restarted for each change.
package aihub

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/follow"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// Kind of the resource with which the platform hands registries and the catalog over.
var Kind = platformv1alpha1.GroupVersion.WithKind("AIHub")

var resource = platformv1alpha1.GroupVersion.WithResource("aihubs")

// errUnsettled is for callers that cannot wait.
var errUnsettled = errors.New("the AIHub " + platformv1alpha1.AIHubName + " has not been read yet; try again in a moment")

// Over lays the decisions of an AIHub over the settings of the process; nil changes nothing. A namespace that is set for the
// process stays, since it bounds what is held in memory; the controller of AIHub reports that the two differ.
func Over(settings config.ModelRegistry, spec *platformv1alpha1.AIHubSpec) config.ModelRegistry {
	if spec == nil {
		return settings
	}
	if settings.Namespace == "" {
		settings.Namespace = spec.InstancesNamespace
	}
	settings.Gateway.RouteNamespace = spec.ApplicationNamespace
	if domain := Domain(spec); domain != "" {
		settings.Gateway.Domain = domain
	}
	return settings
}

// Domain of the gateway that an AIHub names; "" when it names none.
func Domain(spec *platformv1alpha1.AIHubSpec) string {
	if spec == nil || spec.Gateway == nil {
		return ""
	}
	return strings.TrimSpace(spec.Gateway.Domain)
}

// Watcher follows the one AIHub, on every replica, since webhooks ask it too. Where the component platform is off there is a nil
// one, which knows of no AIHub and is settled.
type Watcher struct {
	follower  *follow.Follower
	listeners follow.Listeners[*platformv1alpha1.AIHubSpec]

	mu            sync.Mutex
	served, known bool
	spec          *platformv1alpha1.AIHubSpec
}

// NewWatcher returns a Watcher that waits for SetServed.
func NewWatcher(client dynamic.Interface, clk clock.Clock, log logr.Logger) *Watcher {
	w := &Watcher{}
	w.follower = follow.New(follow.Options{
		Client: client.Resource(resource), Resource: schema.GroupResource{Group: resource.Group, Resource: resource.Resource},
		Name: platformv1alpha1.AIHubName, Clock: clk, Log: log, Take: w.take, Denied: func() { w.set(nil) },
	})
	return w
}

// Await returns a wait until it is known what the platform decided: what is published as it wanted must not move because the
// manager has just started.
func (w *Watcher) Await() error {
	if !w.Settled() {
		return &reconciler.Wait{For: "the AIHub to be read", Retry: time.Second}
	}
	return nil
}

// AddTo lets a manager run it.
func (w *Watcher) AddTo(mgr manager.Manager) error {
	if w == nil {
		return nil
	}
	return mgr.Add(w.follower)
}

// SetServed says whether the cluster serves AIHub. Where it does not, there is none.
func (w *Watcher) SetServed(served bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	changed := w.served != served
	if changed {
		w.served, w.known = served, false
	}
	w.mu.Unlock()
	if !changed {
		return
	}
	if !served {
		w.store(nil)
	}
	w.follower.SetServed(served)
}

// Settled is false until the cluster has answered: what was published as an AIHub wanted must not move because the manager has
// just started.
func (w *Watcher) Settled() bool {
	if w == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.served || w.known
}

// Over lays the decisions of the present AIHub over the settings of the process.
func (w *Watcher) Over(settings config.ModelRegistry) config.ModelRegistry {
	if w == nil {
		return settings
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return Over(settings, w.spec)
}

// Certain is Over for those who cannot wait: it fails until the Watcher is settled.
func (w *Watcher) Certain(settings config.ModelRegistry) (config.ModelRegistry, error) {
	if !w.Settled() {
		return settings, errUnsettled
	}
	return w.Over(settings), nil
}

// Changes is a source that wakes a controller with the object whenever the decisions change.
func (w *Watcher) Changes(object client.Object, h handler.EventHandler) source.Source {
	if w == nil {
		return (&follow.Listeners[*platformv1alpha1.AIHubSpec]{}).Changes(object, h)
	}
	return w.listeners.Changes(object, h)
}

// take receives every state of the AIHub. One that cannot be read, which its schema prevents, is none.
func (w *Watcher) take(object *unstructured.Unstructured) {
	if object == nil {
		w.set(nil)
		return
	}
	hub := &platformv1alpha1.AIHub{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, hub); err != nil {
		w.set(nil)
		return
	}
	w.set(&hub.Spec)
}

// set stores what the cluster answered, unless the API has gone meanwhile.
func (w *Watcher) set(spec *platformv1alpha1.AIHubSpec) {
	w.mu.Lock()
	served := w.served
	w.known = served
	w.mu.Unlock()
	if served {
		w.store(spec)
	}
}

// store tells the subscribers of a change.
func (w *Watcher) store(spec *platformv1alpha1.AIHubSpec) {
	w.mu.Lock()
	changed := !equality.Semantic.DeepEqual(w.spec, spec)
	w.spec = spec
	w.mu.Unlock()
	if changed {
		w.listeners.Notify(spec)
	}
}
