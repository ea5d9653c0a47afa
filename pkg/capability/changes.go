package capability

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/follow"
)

// Changes is a source that wakes a controller with the given object at every later change. Changes that come faster than the
// controller takes them up wake it once.
func (w *Watcher) Changes(object client.Object, h handler.EventHandler) source.Source {
	wake, woken := follow.Waker(object, h)
	w.Subscribe(func(Set) { wake() })
	return woken
}
