// Package clusterdomain provides the domain of the cluster's routers.
package clusterdomain

import (
	"strings"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// objectName is the name of the only Ingress configuration.
const objectName = "cluster"

var resource = schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "ingresses"}

// FromIngress returns the domain of an Ingress configuration of OpenShift: spec.appsDomain if it is set, otherwise spec.domain. It returns "" if
// the object is nil or sets neither.
func FromIngress(config *unstructured.Unstructured) string {
	if config == nil {
		return ""
	}
	ingress, err := resources.Decode[configv1.Ingress](config)
	if err != nil {
		return "" // unexpected schema
	}
	return Prefer(ingress.Spec.AppsDomain, ingress.Spec.Domain)
}

// Prefer returns the configured domain, or the discovered one if it is empty. Leading and trailing dots and spaces are removed.
func Prefer(configured, discovered string) string {
	if domain := trimDots(configured); domain != "" {
		return domain
	}
	return trimDots(discovered)
}

func trimDots(domain string) string { return strings.Trim(strings.TrimSpace(domain), ".") }

// Watcher watches the Ingress configuration of OpenShift. It is a manager Runnable that runs on every replica and is idle until
// SetServed(true). Without the API, or without permission for the first list, the domain is empty.
type Watcher struct{ *singleton.Value[string] }

// NewWatcher returns a Watcher without a domain.
func NewWatcher(client dynamic.Interface, clk clock.Clock, log logr.Logger) *Watcher {
	return &Watcher{singleton.NewValue(singleton.Options{
		Client: client.Resource(resource), Resource: resource.GroupResource(), Name: objectName, Clock: clk, Log: log,
	}, singleton.AbsentUnlessKnown, FromIngress)}
}

// Domain returns the current domain without leading and trailing dots, or "" if there is none or it is unknown.
func (w *Watcher) Domain() string {
	domain, _ := w.Current()
	return domain
}

// HasSynced reports whether the domain, or its absence, is known. Until then, objects with the domain must not be applied: the domain would
// be removed temporarily.
func (w *Watcher) HasSynced() bool {
	_, known := w.Current()
	return known
}
