package settings

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Reasons of Events on ConfigMaps.
const (
	// ReasonRefused is that of a document that cannot be used.
	ReasonRefused = "ConfigurationRefused"
	// ReasonIgnored is that of keys without effect in one that is used.
	ReasonIgnored = "ConfigurationIgnored"
)

// noteLimit is how long the note of an Event may be, with a margin; in bytes.
const noteLimit = 960

// message is what an Event reports to the author of a document, or the log alone.
type message struct {
	about  *document
	reason string
	text   string
}

// teller tells messages by Events and in the log.
type teller struct {
	recorder events.EventRecorder
	log      logr.Logger
}

func (t teller) tell(all ...message) {
	for _, m := range all {
		if m.about == nil {
			t.log.Info("The defaults of ModelMesh have mistakes", "reason", m.text)
			continue
		}
		t.log.Info("A ConfigMap of settings has mistakes", "configMap", m.about.String(), "reason", m.text)
		t.recorder.Eventf(m.about.object(), nil, corev1.EventTypeWarning, m.reason, "Configure", "%s", conditions.Clip(m.text, noteLimit))
	}
}

// Changes is a source that wakes a controller with a Namespace whose settings may have changed; an empty name is all of them.
func (s *Source) Changes(h handler.EventHandler) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		s.listeners.Subscribe(ctx, func(namespace string) {
			h.Generic(ctx, event.GenericEvent{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}, queue)
		})
		return nil
	})
}
