// Package raysettings merges the settings of component raycluster with the ConfigMap of the CodeFlare operator, and watches that ConfigMap.
package raysettings

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
// An invalid ConfigMap is reported by an Event and in the log, and the last valid settings remain in effect.
type Source struct {
	*singleton.Watcher
	singleton.Listeners[config.RayCluster]
	options Options

	mu        sync.Mutex
	current   *config.RayCluster // nil until the first valid settings
	lastError error              // the error of the last update
	warnings  []string           // last logged warnings
}

// Options are the dependencies of a Source; all are required.
type Options struct {
	Config   config.Config
	Dynamic  dynamic.Interface
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

// Get returns the current settings. It reads the ConfigMap if it was not listed yet. It returns an error if that fails, or until the first
// valid settings.
func (s *Source) Get(ctx context.Context) (config.RayCluster, error) {
	if err := s.ReadOnce(ctx); err != nil {
		return config.RayCluster{}, fmt.Errorf("reading ConfigMap %s/%s: %w", s.options.Config.OperatorNamespace, ConfigMapName, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return config.RayCluster{}, s.lastError
	}
	return *s.current, nil
}

// update loads the settings with the ConfigMap, nil if it does not exist, and reports a new error by an Event.
func (s *Source) update(object *unstructured.Unstructured) {
	var stored *corev1.ConfigMap
	if object != nil {
		stored = &corev1.ConfigMap{}
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, stored) // the API server stores only valid ConfigMaps
	}
	err := s.load(stored)
	s.mu.Lock()
	isReported := err == nil || s.lastError != nil && err.Error() == s.lastError.Error() // each new watch delivers the ConfigMap again
	s.lastError = err
	s.mu.Unlock()
	if !isReported {
		s.options.Log.Error(err, "The settings of Ray are invalid; the last valid settings stay in effect; without any, RayClusters are not reconciled")
		s.options.Recorder.Eventf(stored, nil, corev1.EventTypeWarning, ReasonRefused, "Configure", "the last valid settings stay in effect; without any, RayClusters are not reconciled: %s", err.Error())
	}
}

// load stores the settings with those of a ConfigMap, which may be nil, and notifies listeners of a change.
func (s *Source) load(stored *corev1.ConfigMap) error {
	var legacy *config.LegacyConfig
	if stored != nil {
		legacy = &config.LegacyConfig{
			Source: "ConfigMap " + client.ObjectKeyFromObject(stored).String(), Data: stored.Data, Embedded: true,
		}
	}
	settings, warnings, err := s.options.Config.RayCluster(legacy)
	if err != nil {
		return fmt.Errorf("settings of Ray: %w", err)
	}
	s.mu.Lock()
	first, changed := s.current == nil, s.current == nil || !reflect.DeepEqual(*s.current, settings)
	s.current = &settings
	logged := slices.Equal(s.warnings, warnings)
	s.warnings = warnings
	s.mu.Unlock()
	if !logged {
		for _, warning := range warnings {
			s.options.Log.Info("A key of the configuration has no effect", "reason", warning)
		}
	}
	if changed && !first {
		s.options.Log.Info("The settings of Ray have changed", "oauth", settings.OAuth, "mTLS", settings.MTLS)
	}
	if changed {
		s.Notify(settings)
	}
	return nil
}
