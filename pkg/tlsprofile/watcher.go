package tlsprofile

import (
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/follow"
)

// objectName is the one APIServer object that a cluster has.
const objectName = "cluster"

var resource = schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "apiservers"}

// Watcher follows the cluster's TLS profile and puts it in force. It is a manager Runnable that runs on every replica.
type Watcher struct {
	*follow.Follower
	listener *Listener
	log      logr.Logger
}

// NewWatcher returns a Watcher that is idle until SetServed(true) says that the cluster serves config.openshift.io. It
// needs list and watch of apiservers.config.openshift.io, and makes do with Intermediate without them.
func NewWatcher(listener *Listener, client dynamic.Interface, clk clock.Clock, log logr.Logger) *Watcher {
	w := &Watcher{listener: listener, log: log}
	w.Follower = follow.New(follow.Options{
		Client: client.Resource(resource), Resource: resource.GroupResource(), Name: objectName, Clock: clk, Log: log,
		Take:   w.take,
		Denied: func() { w.listener.Set(Intermediate()) },
	})
	return w
}

// take puts the profile of the object in force; without an object that is Intermediate.
func (w *Watcher) take(obj *unstructured.Unstructured) {
	if obj == nil {
		obj = &unstructured.Unstructured{}
	}
	profile, unknown, err := FromAPIServer(obj)
	if err != nil {
		w.log.Info("The cluster's TLS profile is not usable, Intermediate takes its place", "reason", err.Error())
	}
	before := w.listener.Current()
	if reflect.DeepEqual(before, profile) {
		return
	}
	w.listener.Set(profile)
	w.log.Info("TLS profile changed", "from", before.Name, "to", profile.Name, "unsupportedCiphers", unknown)
}
