// Package raysettings keeps the settings of the component raycluster in step with the ConfigMap of the CodeFlare operator.
package raysettings

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// ConfigMapName is the name of the ConfigMap, in the namespace of the manager.
const ConfigMapName = "codeflare-operator-config"

// ReasonRefused is the reason of the Event on a ConfigMap that cannot be used.
const ReasonRefused = "ConfigurationRefused"

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// Source holds the settings as they are now. It is a manager Runnable that follows the ConfigMap on every replica: a
// change takes effect without a restart. A change for the worse is reported by an Event on the ConfigMap and in the log,
// and the settings before it stay in force. It needs get, list and watch of the ConfigMap by its name.
type Source struct {
	*singleton.Watcher
	singleton.Listeners[config.RayCluster]
	options Options

	lastError string // what the follower has reported of the ConfigMap as it is now, empty while it is good

	mu      sync.Mutex
	current *config.RayCluster // nil until the first good reading
	notes   []string           // what was logged last
}

// Options are what a Source is made of; all are required.
type Options struct {
	Config   config.Config
	Dynamic  dynamic.Interface
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.Clock
	Log      logr.Logger
}

// New returns a Source that has read nothing yet.
func New(o Options) *Source {
	s := &Source{options: o}
	s.Watcher = singleton.New(singleton.Options{
		Client:   o.Dynamic.Resource(configMaps).Namespace(o.Config.OperatorNamespace),
		Resource: configMaps.GroupResource(), Name: ConfigMapName, Clock: o.Clock, Log: o.Log, OnUpdate: s.update,
	})
	s.SetServed(true)
	return s
}

// Get returns the settings as they are now. Before the first good reading it reads the ConfigMap itself; an error of that
// names what is wrong with it, where it is and what to write.
func (s *Source) Get(ctx context.Context) (config.RayCluster, error) {
	s.mu.Lock()
	current := s.current
	s.mu.Unlock()
	if current != nil {
		return *current, nil
	}
	key := types.NamespacedName{Namespace: s.options.Config.OperatorNamespace, Name: ConfigMapName}
	stored := &corev1.ConfigMap{}
	err := s.options.Live.Get(ctx, key, stored)
	switch {
	case apierrors.IsNotFound(err):
		return s.apply(nil)
	case err != nil:
		return config.RayCluster{}, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	return s.apply(stored)
}

// follow takes what the watch says, and reports a mistake where its author looks.
func (s *Source) update(object *unstructured.Unstructured) {
	var stored *corev1.ConfigMap
	if object != nil {
		stored = &corev1.ConfigMap{}
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, stored) // the API server stores nothing else
	}
	_, err := s.apply(stored)
	if err == nil {
		s.lastError = ""
	} else if text := err.Error(); text != s.lastError { // a ConfigMap is seen again with each new watch
		s.lastError = text
		s.options.Log.Error(err, "The settings of Ray are refused; those before stay in force")
		s.options.Recorder.Eventf(stored, nil, corev1.EventTypeWarning, ReasonRefused, "Configure", "%s", "the settings before stay in force: "+text)
	}
}

// take puts the settings of a ConfigMap in force; nil is none.
func (s *Source) apply(stored *corev1.ConfigMap) (config.RayCluster, error) {
	var older *config.LegacyConfig
	if stored != nil {
		older = &config.LegacyConfig{
			Source: "ConfigMap " + client.ObjectKeyFromObject(stored).String(), Data: stored.Data, Embedded: true,
		}
	}
	settings, notes, err := s.options.Config.RayCluster(older)
	if err != nil {
		return config.RayCluster{}, fmt.Errorf("settings of Ray: %w", err)
	}
	s.mu.Lock()
	first, changed := s.current == nil, s.current == nil || !reflect.DeepEqual(*s.current, settings)
	s.current = &settings
	said := slices.Equal(s.notes, notes)
	s.notes = notes
	s.mu.Unlock()
	if !said {
		for _, note := range notes {
			s.options.Log.Info("A key of the configuration has no effect", "reason", note)
		}
	}
	if changed && !first {
		s.options.Log.Info("The settings of Ray have changed", "oauth", settings.OAuth, "mTLS", settings.MTLS)
	}
	if changed {
		s.Notify(settings)
	}
	return settings, nil
}
