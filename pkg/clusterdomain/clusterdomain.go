// Package clusterdomain knows the domain under which the routers of the cluster publish applications.
package clusterdomain

import (
	"strings"
	"sync"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// objectName is the one Ingress configuration that an OpenShift cluster has.
const objectName = "cluster"

var resource = schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "ingresses"}

// FromIngress returns the domain of an Ingress configuration of OpenShift: spec.appsDomain, which routes without a host
// get where it is set, else spec.domain. Empty when the object is nil or names neither.
func FromIngress(config *unstructured.Unstructured) string {
	if config == nil {
		return ""
	}
	ingress, err := resources.Decode[configv1.Ingress](config)
	if err != nil {
		return "" // of another schema
	}
	return Prefer(ingress.Spec.AppsDomain, ingress.Spec.Domain)
}

// Prefer returns the domain that a user configured, and the discovered one where that is empty. Dots and spaces around
// it do not count.
func Prefer(configured, discovered string) string {
	if domain := clean(configured); domain != "" {
		return domain
	}
	return clean(discovered)
}

func clean(domain string) string { return strings.Trim(strings.TrimSpace(domain), ".") }

// Watcher follows the Ingress configuration of OpenShift. It is a manager Runnable that runs on every replica, idle until
// SetServed(true) says that the cluster serves config.openshift.io. A cluster that serves it not, or does not let us read
// it, has no domain: that is never an error. It needs list and watch of ingresses.config.openshift.io.
type Watcher struct {
	*singleton.Watcher
	singleton.Listeners[string] // with each change of the domain

	mu      sync.Mutex
	domain  string
	settled bool
}

// NewWatcher returns a Watcher without a domain.
func NewWatcher(client dynamic.Interface, clk clock.Clock, log logr.Logger) *Watcher {
	w := &Watcher{}
	w.Watcher = singleton.New(singleton.Options{
		Client: client.Resource(resource), Resource: resource.GroupResource(), Name: objectName, Clock: clk, Log: log,
		OnUpdate: w.take, OnUnavailable: w.settle,
	})
	return w
}

// Domain returns the domain as it is now, without dots around it; empty while none is known.
func (w *Watcher) Domain() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.domain
}

// Settled reports whether the cluster has been asked and has answered, even that there is no domain or that we may not know
// it. Before that nothing that bears the domain is to be written where the API is served, or it would lose it for a moment.
func (w *Watcher) Settled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settled
}

func (w *Watcher) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = true
}

// take stores the domain of the object and tells those who subscribed.
func (w *Watcher) take(config *unstructured.Unstructured) {
	domain := FromIngress(config)
	w.mu.Lock()
	changed := w.domain != domain
	w.domain, w.settled = domain, true
	w.mu.Unlock()
	if changed {
		w.Notify(domain)
	}
}
