package settings

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// Reasons of Events on ConfigMaps.
const (
	// ReasonRefused is the reason of Events about an invalid document.
	ReasonRefused = "ConfigurationRefused"
	// ReasonIgnored is the reason of Events about keys without effect and unsupported values in a valid document.
	ReasonIgnored = "ConfigurationIgnored"
)

// Consequences of an invalid document in messages.
const (
	keptPrevious = "the previous settings stay in effect"
	keptNone     = "runtimes and models are not reconciled until the document is corrected"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// Source holds the current settings of all namespaces. It is a runnable that watches the ConfigMaps on every replica, so that changes
// take effect without a restart. An invalid document is reported by an Event on its ConfigMap and in the log, and the previous settings
// are kept. It lists and watches only ConfigMaps named ConfigMapName or DefaultsName.
//
// Documents are merged in this order: built-in settings, defaults (the ConfigMap, else the file), images and TLS profile of the operator's
// configuration, the ConfigMap of the administrators, the etcd Secret of the operator's configuration, and the ConfigMap of the namespace.
type Source struct {
	Options
	listeners singleton.Listeners[string] // called with the namespace whose settings may have changed, or "" for all
	watchers  []*singleton.Watcher

	mu              sync.Mutex
	loaded          struct{ defaults, configs bool } // whether the documents were read
	defaults, admin *document
	validBase       *Settings // of the last valid defaults; nil before
	adminSettings   *Settings // of the last valid document of the administrators; nil before
	lastError       error     // of the last invalid document; For returns it while adminSettings is nil
	overrides       map[string]*namespaceOverride
}

// namespaceOverride is the document of a namespace and the settings that result from it.
type namespaceOverride struct {
	*document
	settings Settings
	valid    bool // settings were read from a valid document
	upToDate bool // this document was read with the current adminSettings
}

// Options are the parameters of a Source; all are required.
type Options struct {
	Config   config.ModelMesh
	Dynamic  dynamic.Interface
	Recorder events.EventRecorder
	Clock    clock.Clock
	Log      logr.Logger
}

// NewSource returns a Source without settings.
func NewSource(o Options) *Source {
	s := &Source{Options: o}
	operatorNamespace := o.Dynamic.Resource(configMaps).Namespace(o.Config.Namespace)
	configs := singleton.Options{
		Client: o.Dynamic.Resource(configMaps), Resource: configMaps.GroupResource(), Name: ConfigMapName, Clock: o.Clock, Log: o.Log,
		OnList: s.onConfigs,
	}
	if o.Config.NamespaceScope {
		configs.Client = operatorNamespace
	}
	s.watchers = []*singleton.Watcher{singleton.New(configs), singleton.New(singleton.Options{
		Client: operatorNamespace, Resource: configMaps.GroupResource(), Name: DefaultsName, Clock: o.Clock, Log: o.Log, OnUpdate: s.onDefaults,
	})}
	return s
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: standby replicas watch too.
func (s *Source) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It returns when ctx ends, without an error.
func (s *Source) Start(ctx context.Context) error {
	var all sync.WaitGroup
	for _, watcher := range s.watchers {
		watcher.SetServed(true)
		all.Go(func() { _ = watcher.Start(ctx) }) // Start always returns nil
	}
	all.Wait()
	return nil
}

// Admin returns the settings of the administrators, which apply to namespaces without a document.
func (s *Source) Admin(ctx context.Context) (Settings, error) { return s.For(ctx, s.Config.Namespace) }

// For returns the current settings of a namespace. It reads the ConfigMaps if they were not listed yet. Until those of the administrators
// have been valid once, it returns an error, because default settings could rename existing objects. For an invalid document of a
// namespace it returns the previous settings of the namespace, or else those of the administrators.
func (s *Source) For(ctx context.Context, namespace string) (Settings, error) {
	for _, watcher := range s.watchers {
		if err := watcher.ReadOnce(ctx); err != nil {
			return Settings{}, fmt.Errorf("reading ConfigMaps %s: %w", watcher.Name, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.adminSettings == nil {
		return Settings{}, s.lastError
	}
	if override := s.overrides[namespace]; override != nil {
		return s.overrideOf(override), nil
	}
	return *s.adminSettings, nil
}

// overrideOf returns the settings of a namespace with a document. It decodes the document on demand, because only enabled namespaces
// request settings, and in other namespaces a ConfigMap of this name may serve another purpose. The caller must hold mu.
func (s *Source) overrideOf(override *namespaceOverride) Settings {
	if override.upToDate {
		return override.settings
	}
	override.upToDate = true
	settings, notes, err := override.mergeInto(*s.adminSettings, ConfigMapKey, ReadOverride)
	switch {
	case err == nil:
		override.settings, override.valid = settings, true
	case !override.valid:
		override.settings = *s.adminSettings
	}
	s.report(override.document, notes, err, keptPrevious)
	return override.settings
}

func (s *Source) onDefaults(object *unstructured.Unstructured) {
	s.mu.Lock()
	changed := s.setDefaults(fromUnstructured(object))
	s.mu.Unlock()
	s.notify(changed, nil)
}

func (s *Source) onConfigs(objects []*unstructured.Unstructured) {
	var documents []*document
	for _, object := range objects {
		documents = append(documents, fromUnstructured(object))
	}
	s.mu.Lock()
	changed, namespaces := s.setConfigs(documents)
	s.mu.Unlock()
	s.notify(changed, namespaces)
}

// setDefaults sets the ConfigMap of defaults, nil if it does not exist, and reports whether the settings of the administrators have changed.
// The caller must hold mu.
func (s *Source) setDefaults(stored *document) (changed bool) {
	if s.loaded.defaults && s.defaults.equals(stored) {
		return false
	}
	s.loaded.defaults, s.defaults = true, stored
	return s.recompute()
}

// setConfigs sets the ConfigMaps of the administrators and of namespaces. It reports whether the settings of the administrators have changed,
// and returns the namespaces with a changed document. The caller must hold mu.
func (s *Source) setConfigs(documents []*document) (changed bool, namespaces []string) {
	admin, namespaces := s.splitConfigs(documents)
	if s.loaded.configs && s.admin.equals(admin) {
		return false, namespaces
	}
	s.loaded.configs, s.admin = true, admin
	return s.recompute(), namespaces
}

// splitConfigs updates overrides, and returns the admin document and the namespaces with a changed document. The caller must hold mu.
func (s *Source) splitConfigs(documents []*document) (admin *document, changed []string) {
	overrides := map[string]*namespaceOverride{}
	for _, doc := range documents {
		if doc.Namespace == s.Config.Namespace {
			admin = doc
			continue
		}
		override := s.overrides[doc.Namespace]
		if override == nil {
			override = &namespaceOverride{}
		}
		if !override.equals(doc) {
			override.document, override.upToDate = doc, false
			changed = append(changed, doc.Namespace)
		}
		overrides[doc.Namespace] = override
	}
	for namespace := range s.overrides {
		if overrides[namespace] == nil {
			changed = append(changed, namespace)
		}
	}
	s.overrides = overrides
	return admin, changed
}

// recompute updates the settings of the administrators if both documents were read, and reports whether they have changed. If a document
// is invalid, the settings of its last valid version are kept. The caller must hold mu.
func (s *Source) recompute() (changed bool) {
	if !s.loaded.defaults || !s.loaded.configs {
		return false
	}
	consequence := keptPrevious
	if s.adminSettings == nil {
		consequence = keptNone
	}
	base, notes, err := baseSettings(s.Config, s.defaults)
	s.report(s.defaults, notes, err, consequence)
	if err == nil {
		s.validBase = &base
	}
	if s.validBase == nil {
		s.lastError = err
		return false
	}
	settings, notes, err := adminSettings(s.Config, *s.validBase, s.admin)
	s.report(s.admin, notes, err, consequence)
	if err != nil {
		s.lastError = err
		return false
	}
	if s.adminSettings != nil && equality.Semantic.DeepEqual(*s.adminSettings, settings) {
		return false
	}
	s.adminSettings = &settings
	for _, override := range s.overrides {
		override.upToDate = false
	}
	return true
}

// notify calls the listeners: for all namespaces if the administrators' settings have changed, else for the changed namespaces.
func (s *Source) notify(changed bool, changedNamespaces []string) {
	if changed {
		s.Log.Info("The settings of ModelMesh have changed")
		changedNamespaces = []string{""}
	}
	for _, namespace := range changedNamespaces {
		s.listeners.Notify(namespace)
	}
}

// report records an Event and a log line about errors and notes of a document, unless the message equals the last one. For the file of
// defaults, a nil document, it only logs, also repeatedly. consequence describes the effect of an error.
func (s *Source) report(doc *document, notes []string, err error, consequence string) {
	reason, message := ReasonIgnored, strings.Join(notes, "\n")
	if err != nil {
		reason, message = ReasonRefused, consequence+": "+err.Error()
	}
	name := "file of defaults"
	if doc != nil {
		if doc.lastMessage == message {
			return
		}
		doc.lastMessage = message
		name = "ConfigMap " + client.ObjectKeyFromObject(doc).String()
	}
	if message == "" {
		return
	}
	log := s.Log.WithValues("document", name, "reason", reason, "message", message)
	if err != nil {
		log.Info("Settings of ModelMesh contain errors")
	} else {
		log.Info("Settings of ModelMesh contain keys without effect or unsupported values")
	}
	if doc != nil {
		s.Recorder.Eventf(doc.ConfigMap, nil, corev1.EventTypeWarning, reason, "Configure", "%s", message)
	}
}

// Changes returns a source of Generic events for Namespaces whose settings may have changed; an empty name means all.
func (s *Source) Changes(h handler.EventHandler) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		s.listeners.Subscribe(ctx, func(namespace string) {
			h.Generic(ctx, event.GenericEvent{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}, queue)
		})
		return nil
	})
}
