package settings

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Reasons of Events on ConfigMaps.
const (
	// ReasonRefused is that of a document that cannot be used.
	ReasonRefused = "ConfigurationRefused"
	// ReasonIgnored is that of keys without effect in one that is used.
	ReasonIgnored = "ConfigurationIgnored"
)

// What is in force while a document cannot be used.
const (
	keptPrevious = "the settings before stay in force"
	keptNone     = "no model is served until it is right"
)

// noteLimit is how long the note of an Event may be, with a margin; in bytes.
const maxEventNoteBytes = 960

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// Source holds the settings of all namespaces as they are now. It is a manager Runnable that follows the ConfigMaps on every
// replica: a change takes effect without a restart. A change for the worse is reported by an Event on the ConfigMap and in the log,
// and the settings before it stay in force. It needs get, list and watch of ConfigMaps by the two names.
//
// Documents are laid over each other: what the program knows, the defaults (the ConfigMap, else the file), the images of the
// manager's environment, the ConfigMap of the administrators, and for a namespace its own ConfigMap.
type Source struct {
	Options
	listeners singleton.Listeners[string] // called with the namespace whose settings may have changed; "" is all of them
	watchers  []*singleton.Watcher
	readMutex sync.Mutex // held while the first reading asks the API server

	mu              sync.Mutex
	loaded          struct{ defaults, configs bool } // what has been read at all
	defaults, admin *document
	validBase       *Settings // of the last good defaults; nil until they were good once
	adminSettings   *Settings // of the administrators; nil until they were good once
	lastError       error     // why current is nil
	overrides       map[string]*namespaceOverride
}

// space is a namespace with a document of its own, and what was made of that.
type namespaceOverride struct {
	*document
	settings Settings
	valid    bool // settings hold a good reading
	upToDate bool // of this document, over what is below it now
}

// Options are what a Source is made of; all are required.
type Options struct {
	Config   config.ModelMesh
	Dynamic  dynamic.Interface
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.Clock
	Log      logr.Logger
}

// NewSource returns a Source that has read nothing yet.
func NewSource(o Options) *Source {
	s := &Source{Options: o}
	own := o.Dynamic.Resource(configMaps).Namespace(o.Config.Namespace)
	configs := singleton.Options{
		Client: o.Dynamic.Resource(configMaps), Resource: configMaps.GroupResource(), Name: ConfigMapName, Clock: o.Clock, Log: o.Log,
		OnList: s.onConfigs,
	}
	if o.Config.NamespaceScope {
		configs.Client = own
	}
	s.watchers = []*singleton.Watcher{singleton.New(configs), singleton.New(singleton.Options{
		Client: own, Resource: configMaps.GroupResource(), Name: DefaultsName, Clock: o.Clock, Log: o.Log, OnUpdate: s.onDefaults,
	})}
	return s
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: standby replicas follow too.
func (s *Source) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It returns when ctx ends and never with an error.
func (s *Source) Start(ctx context.Context) error {
	var all sync.WaitGroup
	for _, f := range s.watchers {
		f.SetServed(true)
		all.Go(func() {
			if err := f.Start(ctx); err != nil {
				s.Log.Error(err, "Following a ConfigMap has ended")
			}
		})
	}
	all.Wait()
	return nil
}

// Admin returns the settings of the administrators, which hold where no namespace says something for itself.
func (s *Source) Admin(ctx context.Context) (Settings, error) { return s.For(ctx, s.Config.Namespace) }

// For returns the settings of a namespace as they are now. Before the first good reading it reads the ConfigMaps itself; an
// error of that names what is wrong and where, and there are no settings then: defaults could move what is served. A mistake in
// the ConfigMap of a namespace is no error: its settings before, or else those of the administrators, stay in force there.
func (s *Source) For(ctx context.Context, namespace string) (Settings, error) {
	if err := s.readOnce(ctx); err != nil {
		return Settings{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.adminSettings == nil {
		return Settings{}, s.lastError
	}
	if own := s.overrides[namespace]; own != nil {
		return s.overrideOf(own), nil
	}
	return *s.adminSettings, nil
}

// override returns the settings of a namespace with a document of its own. It is decoded when settings are requested, which happens
// for namespaces that are served only: what others keep under the name is their affair. The lock is held.
func (s *Source) overrideOf(own *namespaceOverride) Settings {
	if own.upToDate {
		return own.settings
	}
	own.upToDate = true
	settings, notes, err := own.applyTo(*s.adminSettings, ConfigMapKey, ReadOverride)
	switch {
	case err == nil:
		own.settings, own.valid = settings, true
	case !own.valid:
		own.settings = *s.adminSettings
	}
	s.report(own.document, notes, err, keptPrevious)
	return own.settings
}

// readOnce reads what the watches have not brought yet.
func (s *Source) readOnce(ctx context.Context) error {
	s.readMutex.Lock()
	defer s.readMutex.Unlock()
	s.mu.Lock()
	known := s.loaded
	s.mu.Unlock()
	if !known.defaults {
		stored := &corev1.ConfigMap{}
		key := types.NamespacedName{Namespace: s.Config.Namespace, Name: DefaultsName}
		switch err := s.Live.Get(ctx, key, stored); {
		case apierrors.IsNotFound(err):
			stored = nil
		case err != nil:
			return fmt.Errorf("reading ConfigMap %s: %w", key, err)
		}
		s.setDefaults(fromConfigMap(stored), true)
	}
	if !known.configs {
		list := &corev1.ConfigMapList{}
		selection := []client.ListOption{client.MatchingFields{"metadata.name": ConfigMapName}}
		if s.Config.NamespaceScope {
			selection = append(selection, client.InNamespace(s.Config.Namespace))
		}
		if err := s.Live.List(ctx, list, selection...); err != nil {
			return fmt.Errorf("reading ConfigMaps %s: %w", ConfigMapName, err)
		}
		var all []*document
		for i := range list.Items {
			all = append(all, fromConfigMap(&list.Items[i]))
		}
		s.setConfigs(all, true)
	}
	return nil
}

func (s *Source) onDefaults(object *unstructured.Unstructured) {
	s.setDefaults(fromUnstructured(object), false)
}

func (s *Source) onConfigs(objects []*unstructured.Unstructured) {
	all := make([]*document, 0, len(objects))
	for _, object := range objects {
		all = append(all, fromUnstructured(object))
	}
	s.setConfigs(all, false)
}

// takeDefaults takes the ConfigMap of defaults, nil for none. What a first reading asked for does not replace what a watch has
// brought meanwhile.
func (s *Source) setDefaults(stored *document, first bool) {
	s.mu.Lock()
	changed := false
	if !s.loaded.defaults || !first && !s.defaults.equals(stored) {
		s.loaded.defaults, s.defaults = true, stored
		changed = s.recompute()
	}
	s.mu.Unlock()
	if !first {
		s.notify(changed, nil)
	}
}

// takeConfigs takes the ConfigMaps of settings: that of the administrators, and those of namespaces.
func (s *Source) setConfigs(all []*document, first bool) {
	s.mu.Lock()
	var moved []string
	changed := false
	if !s.loaded.configs || !first {
		var admin *document
		admin, moved = s.splitConfigs(all)
		if !s.loaded.configs || !s.admin.equals(admin) {
			s.loaded.configs, s.admin = true, admin
			changed = s.recompute()
		}
	}
	s.mu.Unlock()
	if !first { // else the caller gets the answer, and no other settings were in use before
		s.notify(changed, moved)
	}
}

// sort finds the document of the administrators, keeps those of namespaces, and returns the namespaces whose document has changed, which
// keep the last good reading. The lock is held.
func (s *Source) splitConfigs(all []*document) (admin *document, moved []string) {
	spaces := map[string]*namespaceOverride{}
	for _, one := range all {
		if one.Namespace == s.Config.Namespace {
			admin = one
			continue
		}
		known := s.overrides[one.Namespace]
		if known == nil {
			known = &namespaceOverride{}
		}
		if !known.equals(one) {
			known.document, known.upToDate = one, false
			moved = append(moved, one.Namespace)
		}
		spaces[one.Namespace] = known
	}
	for namespace := range s.overrides {
		if spaces[namespace] == nil {
			moved = append(moved, namespace)
		}
	}
	s.overrides = spaces
	return admin, moved
}

// settle works out the settings of the administrators once both documents are known, and tells whether they have changed. Where a document
// is bad, what it said before stays in force. The lock is held.
func (s *Source) recompute() (changed bool) {
	if !s.loaded.defaults || !s.loaded.configs {
		return false
	}
	kept := keptPrevious
	if s.adminSettings == nil {
		kept = keptNone
	}
	below, notes, err := baseSettings(s.Config, s.defaults)
	s.report(s.defaults, notes, err, kept)
	if err == nil {
		s.validBase = &below
	}
	if s.validBase == nil {
		s.lastError = err
		return false
	}
	settings, notes, err := adminSettings(s.Config, *s.validBase, s.admin)
	s.report(s.admin, notes, err, kept)
	if err != nil {
		s.lastError = err
		return false
	}
	if s.adminSettings != nil && equality.Semantic.DeepEqual(*s.adminSettings, settings) {
		return false
	}
	s.adminSettings = &settings
	for _, known := range s.overrides {
		known.upToDate = false
	}
	return true
}

// announce wakes who watches: for everything where the administrators' settings have changed, else for the namespaces that have.
func (s *Source) notify(changed bool, moved []string) {
	if changed {
		s.Log.Info("The settings of ModelMesh have changed")
		moved = []string{""}
	}
	for _, namespace := range moved {
		s.listeners.Notify(namespace)
	}
}

// report tells the author of a document what is wrong with it, or has no effect, unless that was said last: by an Event and in the log.
// Kept says what is in force after a mistake. Without a document it is the file of defaults, which has no author.
func (s *Source) report(about *document, notes []string, err error, kept string) {
	reason, text := ReasonIgnored, strings.Join(notes, "\n")
	if err != nil {
		reason, text = ReasonRefused, kept+": "+err.Error()
	}
	if about == nil {
		if text != "" {
			s.Log.Info("The defaults of ModelMesh have mistakes", "reason", text)
		}
		return
	}
	known := about.lastMessage == text
	about.lastMessage = text
	if known || text == "" {
		return
	}
	s.Log.Info("A ConfigMap of settings has mistakes", "configMap", client.ObjectKeyFromObject(about).String(), "reason", text)
	s.Recorder.Eventf(about.ConfigMap, nil, corev1.EventTypeWarning, reason, "Configure", "%s", conditions.Clip(text, maxEventNoteBytes))
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
