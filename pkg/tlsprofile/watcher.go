package tlsprofile

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// objectName is the name of the only APIServer object.
const objectName = "cluster"

var resource = schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "apiservers"}

// Watcher watches the TLS profile of the cluster and sets it on a Listener. It is a manager Runnable that runs on every replica.
type Watcher struct {
	*singleton.Watcher
	Options
}

// Options of a Watcher.
type Options struct {
	// Listener receives the profiles.
	Listener *Listener
	// Pods is the current profile of servers in pods. PodsChanged is called when another profile is required.
	Pods        Profile
	PodsChanged func()
	Client      dynamic.Interface
	Clock       clock.Clock
	Log         logr.Logger
}

// NewWatcher returns a Watcher that is idle until SetServed(true). It needs list and watch of apiservers.config.openshift.io, and uses
// Intermediate without them.
func NewWatcher(o Options) *Watcher {
	w := &Watcher{Options: o}
	w.Watcher = singleton.New(singleton.Options{
		Client: o.Client.Resource(resource), Resource: resource.GroupResource(), Name: objectName, Clock: o.Clock, Log: o.Log,
		OnUpdate:      w.onUpdate,
		OnUnavailable: func() { w.Listener.Set(Intermediate()) },
	})
	return w
}

// onUpdate sets the profile of the object; Intermediate without an object.
func (w *Watcher) onUpdate(obj *unstructured.Unstructured) {
	if obj == nil {
		obj = &unstructured.Unstructured{}
	}
	profile, unknown, err := FromAPIServer(obj)
	if err != nil {
		w.Log.Info("Cannot use the TLS profile of the cluster; using the profile Intermediate", "reason", err.Error())
	}
	if before := w.Listener.Current(); !before.Equal(profile) {
		w.Listener.Set(profile)
		w.Log.Info("TLS profile changed", "from", before.Name, "to", profile.Name, "unsupportedCiphers", unknown)
	}
	if pods := ForPods(obj); !pods.Equal(w.Pods) {
		w.PodsChanged()
	}
}

// ReadForPods returns the profile for servers in pods of this cluster; the zero Profile if the cluster has none.
func ReadForPods(ctx context.Context, c dynamic.Interface) (Profile, error) {
	list, err := c.Resource(resource).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + objectName})
	if apierrors.IsNotFound(err) {
		return Profile{}, nil
	}
	if err != nil {
		return Profile{}, fmt.Errorf("reading the TLS profile of the cluster: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].GetName() == objectName {
			return ForPods(&list.Items[i]), nil
		}
	}
	return Profile{}, nil
}
