// Package raysettings merges the settings of component raycluster with the ConfigMap of the CodeFlare operator, and watches it.
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

// ReasonRefused is the reason of the Event on an invalid ConfigMap.
const ReasonRefused = "ConfigurationRefused"

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// Source provides the current settings. It is a manager Runnable of every replica: changes of the ConfigMap take effect without a restart.
// An invalid ConfigMap is reported by an Event and in the log, and the last valid settings stay in force. It requires get, list and watch
// of the ConfigMap by name.
type Source struct {
	*singleton.Watcher
	singleton.Listeners[config.RayCluster]
	options Options

	lastError string // last reported error of the ConfigMap, "" while it is valid

	mu      sync.Mutex
	current *config.RayCluster // nil until the first valid ConfigMap
	notes   []string           // last logged notes
}

// Options are the dependencies of a Source; all are required.
type Options struct {
	Config   config.Config
	Dynamic  dynamic.Interface
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.Clock
	Log      logr.Logger
}

// New returns a Source without settings.
func New(o Options) *Source {
	s := &Source{options: o}
	s.Watcher = singleton.New(singleton.Options{
		Client:   o.Dynamic.Resource(configMaps).Namespace(o.Config.OperatorNamespace),
		Resource: configMaps.GroupResource(), Name: ConfigMapName, Clock: o.Clock, Log: o.Log, OnUpdate: s.update,
	})
	s.SetServed(true)
	return s
}

// Get returns the current settings. Until the watch has delivered valid ones, it reads the ConfigMap itself; an error then names the
// invalid key and the expected value.
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

// update applies a watched ConfigMap and reports an error by an Event.
func (s *Source) update(object *unstructured.Unstructured) {
	var stored *corev1.ConfigMap
	if object != nil {
		stored = &corev1.ConfigMap{}
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, stored) // the API server stores only valid ConfigMaps
	}
	_, err := s.apply(stored)
	if err == nil {
		s.lastError = ""
	} else if text := err.Error(); text != s.lastError { // each new watch delivers the ConfigMap again
		s.lastError = text
		s.options.Log.Error(err, "The settings of Ray are invalid; the previous settings stay in effect")
		s.options.Recorder.Eventf(stored, nil, corev1.EventTypeWarning, ReasonRefused, "Configure", "%s", "the previous settings stay in effect: "+text)
	}
}

// apply stores the settings of a ConfigMap, or the defaults for nil.
func (s *Source) apply(stored *corev1.ConfigMap) (config.RayCluster, error) {
	var legacy *config.LegacyConfig
	if stored != nil {
		legacy = &config.LegacyConfig{
			Source: "ConfigMap " + client.ObjectKeyFromObject(stored).String(), Data: stored.Data, Embedded: true,
		}
	}
	settings, notes, err := s.options.Config.RayCluster(legacy)
	if err != nil {
		return config.RayCluster{}, fmt.Errorf("settings of Ray: %w", err)
	}
	s.mu.Lock()
	first, changed := s.current == nil, s.current == nil || !reflect.DeepEqual(*s.current, settings)
	s.current = &settings
	logged := slices.Equal(s.notes, notes)
	s.notes = notes
	s.mu.Unlock()
	if !logged {
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
